# Finds LibTorch for the reference trainer: what Torch_DIR or CMAKE_PREFIX_PATH name, else the torch
# package of the active Python, else the distribution's. Sets LIBTORCH_FOUND and, as a target with
# everything that a trainer needs, libtorch.

# The Python package's folder of CMake files, without importing the package.
function(libtorch_of_python result)
  set(${result} "" PARENT_SCOPE)
  if(NOT Python3_EXECUTABLE)
    find_program(LIBTORCH_PYTHON NAMES python3 python)
    set(Python3_EXECUTABLE "${LIBTORCH_PYTHON}")
  endif()
  if(NOT Python3_EXECUTABLE)
    return()
  endif()
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -c
      "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE package OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT package OR NOT EXISTS "${package}/share/cmake/Torch/TorchConfig.cmake")
    return()
  endif()
  if(EXISTS "${package}/lib/libtorch_cuda.so")
    find_package(CUDAToolkit QUIET)
    if(NOT CUDAToolkit_FOUND)
      message(STATUS "libtorch: passing over ${package}, a CUDA build without a CUDA toolkit here")
      return()
    endif()
  endif()
  set(${result} "${package}/share/cmake/Torch" PARENT_SCOPE)
endfunction()

# TorchConfig asks the system first for its parts and would take another LibTorch's; those that belong
# to the configuration come first here.
function(libtorch_pin_parts directory)
  if(EXISTS "${directory}/../Caffe2/Caffe2Config.cmake")
    get_filename_component(caffe2 "${directory}/../Caffe2" ABSOLUTE)
    set(Caffe2_DIR "${caffe2}" CACHE PATH "Caffe2's CMake files, of the same LibTorch" FORCE)
  endif()
  get_filename_component(prefix "${directory}/../../.." ABSOLUTE)
  foreach(variable c10_LIBRARY C10_LIBRARY TORCH_LIBRARY)  # the spellings of several versions
    string(REGEX REPLACE "_LIBRARY$" "" part ${variable})
    string(TOLOWER ${part} part)
    find_library(${variable} ${part} PATHS "${prefix}/lib" NO_DEFAULT_PATH)
    if(NOT ${variable})
      unset(${variable} CACHE)
    endif()
  endforeach()
endfunction()

if(NOT Torch_DIR)
  # Does the user name one? Only what was given counts here, not the system.
  find_path(LIBTORCH_GIVEN TorchConfig.cmake
    PATHS ${CMAKE_PREFIX_PATH} ENV CMAKE_PREFIX_PATH
    PATH_SUFFIXES share/cmake/Torch Torch lib/cmake/Torch NO_DEFAULT_PATH)
  if(LIBTORCH_GIVEN)
    set(Torch_DIR "${LIBTORCH_GIVEN}" CACHE PATH "LibTorch's CMake files")
  else()
    libtorch_of_python(python_torch)
    if(python_torch)
      set(Torch_DIR "${python_torch}" CACHE PATH "LibTorch's CMake files")
    endif()
  endif()
endif()
if(Torch_DIR)
  libtorch_pin_parts("${Torch_DIR}")
endif()

find_package(Torch QUIET)
set(LIBTORCH_FOUND ${Torch_FOUND})
if(LIBTORCH_FOUND)
  message(STATUS "libtorch: ${Torch_DIR}")
  add_library(libtorch INTERFACE)
  target_link_libraries(libtorch INTERFACE ${TORCH_LIBRARIES})
  # Its headers are somebody else's: no warning of theirs may break our build.
  target_include_directories(libtorch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  separate_arguments(libtorch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(libtorch INTERFACE ${libtorch_flags})
endif()
