# Our own targets link this; warnings are errors in dev and CI only, so that a newer compiler never
# breaks a user's build.
add_library(ckptverify_options INTERFACE)
target_compile_options(ckptverify_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
  $<$<BOOL:${CKPTVERIFY_WERROR}>:-Werror>)
if(CKPTVERIFY_SANITIZE)
  target_compile_options(ckptverify_options INTERFACE
    -fsanitize=${CKPTVERIFY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(ckptverify_options INTERFACE -fsanitize=${CKPTVERIFY_SANITIZE})
endif()
target_include_directories(ckptverify_options INTERFACE
  "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
