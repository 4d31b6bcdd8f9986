# How every target of the tree is made.
#
#   baton_component(NAME SOURCES file... [DEPENDS component...] [OPTIONAL_DEPENDS component...]
#                   [PUBLIC_LIBS target...] [PRIVATE_LIBS target...])
#       The installed library baton_NAME, also known as baton::NAME. OPTIONAL_DEPENDS are linked if
#       they are part of this build, and then the sources see BATON_HAS_<COMPONENT> defined to 1.
#       PUBLIC_LIBS and PRIVATE_LIBS are third-party targets; the package finds them again for its
#       users. The public ones are of libraries whose handles users pass to functions of Baton: they
#       get its headers as well.
#   baton_program(NAME SOURCES file... [LIBS target...] [INSTALL] [COMPONENT runtime|apps])
#       With INSTALL part of an installation, of `runtime` or of that component. See BatonDeb.cmake.
#   baton_internal_library(NAME [OBJECT] SOURCES file... [LIBS target...] [PRIVATE_LIBS target...])
#       What several programs of the tree share; not installed.
#   baton_test_library(...)
#       The same for tests: compiled as they are.
#   baton_test(NAME SOURCES file... [LIBS target...] [ENV VAR=value...] [LABELS label...]
#              [TIMEOUT seconds] [SHARDS n] [SLOTS n] [SERIAL])
#       A GoogleTest executable, one ctest test of the same name. The target tests_<label> builds
#       all tests of a label. SHARDS n divides its cases among n ctest tests NAME.1 … NAME.n that run
#       side by side: for programs whose cases mostly wait. SLOTS n says how many of the tests that
#       `./dev test` runs at once it counts as: 4 are a processor. SERIAL keeps other tests from
#       running beside it.
#   baton_server_label(STORE VARIABLE)
#       The label of tests that need the server of that store or broker, for `./dev test --without`; empty if it
#       has none.
#   baton_bench(NAME SOURCES file... [LIBS target...])     the program bench_NAME
#   baton_fuzz(NAME SOURCES file... [LIBS target...])      the program fuzz_NAME

include_guard(GLOBAL)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)  # else CMake compiles for it, but does not link so
include(BatonPrecompiled)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR}")
set(BATON_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")
configure_file("${CMAKE_CURRENT_LIST_DIR}/version.h.in"
               "${BATON_GENERATED_DIR}/include/baton/version.h" @ONLY)

if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(BATON_CCACHE ccache)
  mark_as_advanced(BATON_CCACHE)
  if(BATON_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${BATON_CCACHE}")
  endif()
endif()

if(PROJECT_IS_TOP_LEVEL)
  set(BATON_PROGRAMS_TARGET programs)
else()
  set(BATON_PROGRAMS_TARGET baton_programs)  # a project around this one may have programs too
endif()
add_custom_target(${BATON_PROGRAMS_TARGET})  # all that is installed

# These exist even if no test carries the label yet, so that a script can always build them.
foreach(label IN ITEMS unit conformance)
  if(BATON_BUILD_TESTS)
    add_custom_target(tests_${label})
  endif()
endforeach()

# The folders that a file of layers names, in its order.
function(baton_read_layers file variable)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${file}")
  file(STRINGS "${PROJECT_SOURCE_DIR}/${file}" lines REGEX "^[a-z]")
  list(TRANSFORM lines REPLACE ":.*" "")
  set(${variable} ${lines} PARENT_SCOPE)
endfunction()

function(baton_add_folders)
  foreach(folder IN LISTS ARGV)
    if(EXISTS "${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt")
      add_subdirectory("${PROJECT_SOURCE_DIR}/${folder}" "${PROJECT_BINARY_DIR}/${folder}")
    endif()
  endforeach()
endfunction()

macro(_baton_reject_unknown_arguments function name)
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function}(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "${function}(${name}): no SOURCES")
  endif()
endmacro()

# Language, warnings, sanitizers and the private include path of our own code.
function(baton_target_defaults target)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PRIVATE
    "${PROJECT_SOURCE_DIR}/include" "${BATON_GENERATED_DIR}/include" "${PROJECT_SOURCE_DIR}/src")

  # Missing field initialisers are how options with designated initialisers are meant to be written.
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wundef
    -Wno-missing-field-initializers -Wno-overlength-strings)
  if(BATON_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 reports std::string's own code here (GCC bug 105651).
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()

  if(BATON_SANITIZE)
    set(flags -fsanitize=${BATON_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(${target} PRIVATE ${flags})
    target_link_options(${target} PRIVATE ${flags})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # Instrumented code confuses g++'s flow analysis; the other presets keep this warning.
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
  endif()
  if(BATON_BUILD_FUZZ)
    # The fuzzer is guided by coverage of the code under test, not only of its own entry point.
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# What limits the harm of a memory error, in libraries and programs. Sanitizers find more than this.
function(baton_harden target)
  if(BATON_SANITIZE OR BATON_BUILD_FUZZ)
    return()
  endif()
  target_compile_options(${target} PRIVATE -fstack-protector-strong -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64|i.86)$")
    target_compile_options(${target} PRIVATE -fcf-protection)
  endif()
  # Without optimisation the C library has only a warning for it.
  target_compile_options(${target} PRIVATE
    "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
  target_link_options(${target} PRIVATE
    LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
endfunction()

# Where a program or library finds the libraries of Baton: beside itself, never in the directory in
# which it is started. The build tree has the same folders and entries as an installation: else CMake
# leaves room for the installed path by empty entries, and those mean the current directory. Without
# libraries to find there is no entry at all.
function(baton_find_libraries_in target directory)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  if(BUILD_SHARED_LIBS)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "${directory}")
  endif()
endfunction()

# Headers are then read once a component, and not once a file; the other presets see that each file
# also stands alone.
function(baton_compile_together target)
  if(NOT BATON_TOGETHER)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ takes the sources for headers, which should have no local types in their classes.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

function(baton_component NAME)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" ""
    "SOURCES;DEPENDS;OPTIONAL_DEPENDS;PUBLIC_LIBS;PRIVATE_LIBS")
  _baton_reject_unknown_arguments(baton_component ${NAME})
  set(target baton_${NAME})
  add_library(${target} ${arg_SOURCES})
  add_library(baton::${NAME} ALIAS ${target})
  baton_target_defaults(${target})
  baton_harden(${target})
  baton_compile_together(${target})
  baton_precompile(${target} library)
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${NAME}
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_include_directories(${target} INTERFACE
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
    "$<BUILD_INTERFACE:${BATON_GENERATED_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")

  set(depends ${arg_DEPENDS})
  foreach(dependency IN LISTS arg_DEPENDS)
    if(NOT TARGET baton_${dependency})
      message(FATAL_ERROR "${target} depends on ${dependency}, which is not in this build or is a "
                          "higher layer; dependencies point down only")
    endif()
    target_link_libraries(${target} PUBLIC baton::${dependency})
  endforeach()
  foreach(dependency IN LISTS arg_OPTIONAL_DEPENDS)
    if(TARGET baton_${dependency})
      string(TOUPPER ${dependency} upper)
      target_link_libraries(${target} PRIVATE baton::${dependency})
      target_compile_definitions(${target} PRIVATE BATON_HAS_${upper}=1)
      list(APPEND depends ${dependency})
    endif()
  endforeach()
  baton_link_public(${target} public_packages ${arg_PUBLIC_LIBS})
  baton_link_private(${target} private_packages ${arg_PRIVATE_LIBS})
  set(packages ${public_packages} ${private_packages})
  if(BATON_INSTALL)
    baton_export_component(${NAME} "${depends}" "${packages}")
  endif()
  add_dependencies(${BATON_PROGRAMS_TARGET} ${target})
endfunction()

function(baton_program NAME)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INSTALL" "COMPONENT" "SOURCES;LIBS")
  _baton_reject_unknown_arguments(baton_program ${NAME})
  if(NOT arg_COMPONENT)
    set(arg_COMPONENT runtime)
  endif()
  add_executable(${NAME} ${arg_SOURCES})
  baton_target_defaults(${NAME})
  baton_harden(${NAME})
  baton_precompile(${NAME} program)
  target_link_libraries(${NAME} PRIVATE ${arg_LIBS})
  if(arg_INSTALL)
    baton_find_libraries_in(${NAME} "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
    set_property(GLOBAL APPEND PROPERTY BATON_INSTALLED_PROGRAMS ${NAME})
    set_target_properties(${NAME} PROPERTIES BATON_COMPONENT ${arg_COMPONENT})
    if(BATON_INSTALL)
      install(TARGETS ${NAME} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
        COMPONENT ${arg_COMPONENT})
    endif()
    add_dependencies(${BATON_PROGRAMS_TARGET} ${NAME})
  endif()
endfunction()

function(_baton_uninstalled_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OBJECT" "" "SOURCES;LIBS;PRIVATE_LIBS")
  _baton_reject_unknown_arguments(library ${name})
  if(arg_OBJECT)
    add_library(${name} OBJECT ${arg_SOURCES})
  else()
    add_library(${name} STATIC ${arg_SOURCES})
  endif()
  baton_target_defaults(${name})
  target_link_libraries(${name} PUBLIC ${arg_LIBS} PRIVATE ${arg_PRIVATE_LIBS})
endfunction()

function(baton_internal_library name)
  _baton_uninstalled_library(${name} ${ARGN})
  baton_harden(${name})
  baton_precompile(${name} library)
endfunction()

function(baton_test_library name)
  _baton_uninstalled_library(${name} ${ARGN})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}/tests")
  # As tests are, or the precompiled header would not fit.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIE
    $<TARGET_PROPERTY:GTest::gtest,INTERFACE_COMPILE_OPTIONS>)
  baton_test_flags(${name})
  baton_precompile(${name} test)
endfunction()

# Nobody measures the tests themselves. This compiles them in half the time, and unlike -O0 still
# follows values far enough to warn of those that nobody has set.
function(baton_test_flags target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
endfunction()

function(baton_test NAME)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL" "TIMEOUT;SHARDS;SLOTS" "SOURCES;LIBS;ENV;LABELS")
  _baton_reject_unknown_arguments(baton_test ${NAME})
  add_executable(${NAME} ${arg_SOURCES})
  baton_target_defaults(${NAME})
  target_include_directories(${NAME} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${NAME} PRIVATE ${arg_LIBS} GTest::gtest GTest::gtest_main)
  set_target_properties(${NAME} PROPERTIES LINKER_LANGUAGE CXX)  # even if it has only objects
  baton_test_flags(${NAME})
  baton_precompile(${NAME} test)

  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(BATON_SANITIZE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 5")
  endif()
  set(tests ${NAME})
  if(arg_SHARDS)
    set(tests "")
    math(EXPR last "${arg_SHARDS} - 1")
    foreach(index RANGE ${last})
      math(EXPR number "${index} + 1")
      list(APPEND tests ${NAME}.${number})
    endforeach()
  endif()
  if(NOT arg_SLOTS)
    set(arg_SLOTS 1)
  endif()
  set(index 0)
  foreach(test IN LISTS tests)
    set(environment ${arg_ENV} GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/reports/${test}.xml)
    if(arg_SHARDS)
      list(APPEND environment GTEST_TOTAL_SHARDS=${arg_SHARDS} GTEST_SHARD_INDEX=${index})
    endif()
    add_test(NAME ${test} COMMAND ${NAME})
    # The report has the name of the test, which is how `./dev test` counts its cases.
    set_tests_properties(${test} PROPERTIES
      TIMEOUT ${arg_TIMEOUT}
      COST ${arg_TIMEOUT}
      PROCESSORS ${arg_SLOTS}
      LABELS "${arg_LABELS}"
      ENVIRONMENT "${environment}"
      RUN_SERIAL ${arg_SERIAL})
    math(EXPR index "${index} + 1")
  endforeach()
  foreach(label IN LISTS arg_LABELS)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${NAME})
  endforeach()
endfunction()

function(baton_server_label store variable)
  string(REGEX REPLACE "^postgres_advisory$" postgres label ${store})
  if(store MATCHES "^(memory|sqlite|embedded)$")
    set(label "")
  endif()
  set(${variable} "${label}" PARENT_SCOPE)
endfunction()

function(baton_bench NAME)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  _baton_reject_unknown_arguments(baton_bench ${NAME})
  baton_program(bench_${NAME} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS} benchmark::benchmark)
endfunction()

function(baton_fuzz NAME)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  _baton_reject_unknown_arguments(baton_fuzz ${NAME})
  baton_program(fuzz_${NAME} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS})
  target_compile_options(fuzz_${NAME} PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_${NAME} PRIVATE -fsanitize=fuzzer)
endfunction()
