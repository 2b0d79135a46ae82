# find_package(ingot): the compiler for neural networks, its library, and
#
#   ingot_add_model(TARGET MODEL...
#     [MARCH CPU] [DIMS batch=1 ...] [NAME prefix] [THREADS N] [STATE auto|in=out ...] [CPP] [OPTIONS ...])
#
# makes a static library TARGET of one or several models: `ingot compile` runs when a model has changed, and a target that links
# TARGET can include PREFIX.h (PREFIX.hpp with CPP). The prefix is TARGET unless NAME says otherwise. OPTIONS are handed on.
#
#   ingot::ingot    libingot, for programs that compile models themselves
#   ingot::compiler the program; INGOT_EXECUTABLE is where it lies

# PREFIX/lib/cmake/ingot, or PREFIX/lib/MACHINE/cmake/ingot as Debian has it
get_filename_component(_ingot_lib "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
get_filename_component(_ingot_prefix "${_ingot_lib}/.." ABSOLUTE)
if(NOT EXISTS "${_ingot_prefix}/include/ingot.h")
  get_filename_component(_ingot_prefix "${_ingot_prefix}/.." ABSOLUTE)
endif()

if(NOT INGOT_EXECUTABLE)
  find_program(INGOT_EXECUTABLE ingot HINTS "${_ingot_prefix}/bin" NO_CMAKE_FIND_ROOT_PATH)
endif()
if(NOT INGOT_EXECUTABLE)
  set(ingot_FOUND FALSE)
  set(ingot_NOT_FOUND_MESSAGE "the program ingot is not in ${_ingot_prefix}/bin nor in the search path")
  return()
endif()

if(NOT TARGET ingot::compiler)
  add_executable(ingot::compiler IMPORTED)
  set_target_properties(ingot::compiler PROPERTIES IMPORTED_LOCATION "${INGOT_EXECUTABLE}")
endif()

if(NOT TARGET ingot::ingot AND EXISTS "${_ingot_lib}/libingot.a")
  add_library(ingot::ingot STATIC IMPORTED)
  set_target_properties(ingot::ingot PROPERTIES
    IMPORTED_LOCATION "${_ingot_lib}/libingot.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_ingot_prefix}/include"
    INTERFACE_LINK_LIBRARIES "m;pthread;dl")
endif()

function(ingot_add_model target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "CPP" "MARCH;NAME;THREADS" "DIMS;STATE;OPTIONS")
  if(NOT arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ingot_add_model(${target}): no model is named")
  endif()
  set(name "${target}")
  if(arg_NAME)
    set(name "${arg_NAME}")
  endif()
  string(MAKE_C_IDENTIFIER "${name}" name)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.ingot")
  set(models "")
  foreach(model IN LISTS arg_UNPARSED_ARGUMENTS)
    get_filename_component(model "${model}" ABSOLUTE)
    list(APPEND models "${model}")
  endforeach()
  set(options --name "${name}")
  if(arg_MARCH)
    list(APPEND options --march "${arg_MARCH}")
  endif()
  if(arg_THREADS)
    list(APPEND options --threads "${arg_THREADS}")
  endif()
  if(arg_CPP)
    list(APPEND options --cpp)
  endif()
  # dimensions stand in front of the first model: they are said of all
  set(shapes "")
  foreach(dim IN LISTS arg_DIMS)
    list(APPEND shapes -d "${dim}")
  endforeach()
  foreach(state IN LISTS arg_STATE)
    list(APPEND shapes --state "${state}")
  endforeach()
  file(MAKE_DIRECTORY "${folder}")
  # weights above 8 MB are in a file next to the C
  add_custom_command(
    OUTPUT "${folder}/${name}.c" "${folder}/${name}.h"
    BYPRODUCTS "${folder}/${name}.bin" "${folder}/${name}.hpp"
    COMMAND ingot::compiler compile ${shapes} ${models} ${options} ${arg_OPTIONS} -o "${folder}/${name}.c"
    DEPENDS ${models} "${INGOT_EXECUTABLE}"
    COMMENT "ingot: ${target}"
    VERBATIM)
  add_library(${target} STATIC "${folder}/${name}.c" "${folder}/${name}.h")
  target_include_directories(${target} PUBLIC "${folder}")
  # products are rounded before they are added: the bits that ingot computes; without a build type it would be slow code
  set_target_properties(${target} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
    target_compile_options(${target} PRIVATE -ffp-contract=off $<$<CONFIG:>:-O2>)
  endif()
  # of this name's own macro: the assembler asks the file by its path
  string(TOUPPER "${name}" upper)
  target_compile_definitions(${target} PRIVATE "${upper}_WEIGHTS_FILE=\"${folder}/${name}.bin\"")
  if(arg_THREADS AND arg_THREADS GREATER 1)
    find_package(Threads REQUIRED)
    target_link_libraries(${target} PUBLIC Threads::Threads)
  endif()
endfunction()

set(ingot_FOUND TRUE)
