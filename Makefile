# A thin front. Everything it does is one cmake, ctest or script call that can be made by hand.
.DEFAULT_GOAL := build
.PHONY: build demo test lint bench soak configure clean

BUILD := build/release
# Lets a second checkout of the same sources hit the compiler cache.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export CCACHE_SLOPPINESS := pch_defines,time_macros,include_file_mtime,include_file_ctime

# In CI warnings are errors and nothing may be skipped.
CONFIGURE := cmake --preset release $(if $(CI),-DCKPTVERIFY_WERROR=ON) $(CMAKE_FLAGS)

build:
	@scripts/install-dependencies build trainer
	@$(CONFIGURE) -DCKPTVERIFY_TESTS=OFF >build.log 2>&1 || { cat build.log; rm -f build.log; exit 1; }
	@grep -hE '^-- (ckptverify|libtorch|reference trainer):' build.log | sed 's/^-- //' || true; rm -f build.log
	@cmake --build $(BUILD) $(if $(TARGETS),--target $(TARGETS))

demo: TARGETS := demo_programs
demo: build
	@scripts/demo $(BUILD)

test:
	@scripts/install-dependencies build trainer test
	$(CONFIGURE) -DCKPTVERIFY_TESTS=ON
	cmake --build $(BUILD)
	ctest --test-dir $(BUILD) --output-on-failure -j2 -LE 'soak|bench'

lint:
	@scripts/install-dependencies build lint
	scripts/lint build/lint

bench:
	@scripts/install-dependencies build trainer test bench
	$(CONFIGURE) -DCKPTVERIFY_TESTS=ON -DCKPTVERIFY_BENCH=ON
	cmake --build $(BUILD)
	ctest --test-dir $(BUILD) -L bench --verbose

soak:
	@scripts/install-dependencies build trainer test
	$(CONFIGURE) -DCKPTVERIFY_TESTS=ON
	cmake --build $(BUILD)
	ctest --test-dir $(BUILD) --output-on-failure -L soak
	cmake --preset asan-ubsan
	cmake --build build/asan-ubsan
	ctest --test-dir build/asan-ubsan --output-on-failure -j2 -LE 'soak|bench'

clean:
	rm -rf build
