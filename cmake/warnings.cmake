# Our own targets link this; warnings are errors in dev and CI only, so that a newer compiler never
# breaks a user's build.
add_library(ckptverify_options INTERFACE)
target_compile_options(ckptverify_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast>
  $<$<BOOL:${CKPTVERIFY_WERROR}>:-Werror>)
# g++ 12 sees overlaps and uninitialised reads in inlined std::string and std::variant that are not there.
target_compile_options(ckptverify_options INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-array-bounds -Wno-stringop-overflow>)

# The standard headers that nearly every file reads, parsed once a target. ccache needs the flag.
function(ckptverify_precompile target)
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <cstdint> <filesystem> <functional>
    <map> <memory> <optional> <span> <string> <string_view> <utility> <variant> <vector> ${ARGN})
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endfunction()

if(CKPTVERIFY_SANITIZE)
  target_compile_options(ckptverify_options INTERFACE
    -fsanitize=${CKPTVERIFY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(ckptverify_options INTERFACE -fsanitize=${CKPTVERIFY_SANITIZE})
endif()
target_include_directories(ckptverify_options INTERFACE
  "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
