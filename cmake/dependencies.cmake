# Libraries from the distribution. Each is included by one file, pair or folder of ours (tests/rules.py).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)  # headers: Process v2, Asio
find_package(nlohmann_json 3.10 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(DEFLATE REQUIRED IMPORTED_TARGET libdeflate)
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)
if(CKPTVERIFY_TESTS)
  find_package(GTest REQUIRED)
endif()
