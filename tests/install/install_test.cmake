# Installs the build into an empty directory, builds the consumer against it and runs it; also builds
# the programs of the README and of docs/events.md, and one program for each component.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGV} failed:\n${out}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

function(build_project source into)
  run(${CMAKE_COMMAND} -S ${source} -B ${into} -G ${GENERATOR} -D CMAKE_PREFIX_PATH=${WORK}/prefix
      -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
      -D CMAKE_BUILD_TYPE=Debug ${ARGN})
  run(${CMAKE_COMMAND} --build ${into})
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -D DIRECTORIES=${WORK}/prefix -D INSTALLED=ON "-DHARDENED=/bin/|\\.so"
    -D READELF=${READELF} -P ${CMAKE_CURRENT_LIST_DIR}/elf_test.cmake)
build_project(${CONSUMER} ${WORK}/build)
run(${WORK}/build/consumer ${WORK}/locks.db)
if(NOT output MATCHES "held with token [1-9]")
  message(FATAL_ERROR "the consumer said: ${output}")
endif()

# The program of docs/c.md, by CMake and with what pkg-config says of the installed library.
if(C_PROGRAM)
  get_filename_component(directory ${C_PROGRAM} DIRECTORY)
  build_project(${directory} ${WORK}/c)
  file(GLOB_RECURSE pc ${WORK}/prefix/*/baton.pc)
  get_filename_component(directory ${pc} DIRECTORY)
  run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${directory} pkg-config --cflags --libs baton)
  separate_arguments(flags UNIX_COMMAND "${output}")
  run(${COMPILER} -x c -std=c99 -D_POSIX_C_SOURCE=200809L ${C_PROGRAM} -x none ${flags} -lsqlite3
      -o ${WORK}/c_report)
endif()

# The programs that the README and docs/events.md print.
if(REPORT)
  build_project(${REPORT} ${WORK}/report)
endif()
if(EVENTS)
  build_project(${EVENTS} ${WORK}/events)
endif()

# A component alone is enough for what it is there for, and a public header for itself.
file(GLOB COMPONENTS RELATIVE ${COMPONENT_PROGRAMS}/one ${COMPONENT_PROGRAMS}/one/*.cc)
list(TRANSFORM COMPONENTS REPLACE "\\.cc$" "")
build_project(${COMPONENT_PROGRAMS} ${WORK}/components "-DCOMPONENTS=${COMPONENTS}"
              -D CMAKE_BUILD_TYPE=None)
run(${CMAKE_COMMAND} -E chdir ${WORK}/components ${CTEST} --output-on-failure)

# What a user is told who asks for something that is not there.
file(WRITE ${WORK}/refused/CMakeLists.txt [[
cmake_minimum_required(VERSION 3.25)
project(refused LANGUAGES CXX)
find_package(baton REQUIRED COMPONENTS ${ASKED})
]])
function(expect_refusal asked wanted)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${WORK}/refused -B ${WORK}/refused/${asked}
      -G ${GENERATOR} -D CMAKE_PREFIX_PATH=${WORK}/prefix -D CMAKE_CXX_COMPILER=${COMPILER}
      -D ASKED=${asked} ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE out)
  string(REGEX REPLACE "[ \n]+" " " out "${out}")
  if(result EQUAL 0 OR NOT out MATCHES "${wanted}")
    message(SEND_ERROR "who asks for ${asked} should be told \"${wanted}\", and was: ${out}")
  endif()
endfunction()
expect_refusal(opne "baton has no component opne installed components: .*broker, .*open, ")
expect_refusal(relay "needs outbox, which needs the package SQLite3, which is not here .apt install libsql"
               -D CMAKE_DISABLE_FIND_PACKAGE_SQLite3=ON)

# docs/library.md has all of them.
file(READ ${DOCS}/library.md page)
foreach(component IN LISTS COMPONENTS)
  if(NOT page MATCHES "\n\\| `${component}` \\|")
    message(SEND_ERROR "docs/library.md has no component ${component}")
  endif()
endforeach()
file(GLOB headers RELATIVE ${WORK}/prefix/include/baton ${WORK}/prefix/include/baton/*.h)
list(REMOVE_ITEM headers version.h)  # made by the build; pages name files of the tree
foreach(header IN LISTS headers)
  if(NOT page MATCHES "[|,] `${header}`")
    message(SEND_ERROR "docs/library.md does not say which component has ${header}")
  endif()
endforeach()
