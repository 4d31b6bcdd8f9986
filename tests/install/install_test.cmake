# Installs the build into an empty directory, builds the consumer against it and runs it; also builds
# the programs of the README and of docs/events.md.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGV} failed:\n${out}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

function(build_project source into)
  run(${CMAKE_COMMAND} -S ${source} -B ${into} -G ${GENERATOR} -D CMAKE_PREFIX_PATH=${WORK}/prefix
      -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_BUILD_TYPE=Debug)
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

# The programs that the README and docs/events.md print.
if(REPORT)
  build_project(${REPORT} ${WORK}/report)
endif()
if(EVENTS)
  build_project(${EVENTS} ${WORK}/events)
endif()
