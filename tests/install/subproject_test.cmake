# Baton inside of another project: what is not linked is not built, a store is there only if it was
# asked for, and one that cannot be built says which package is missing.
function(configure into)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${SUBPROJECT} -B ${WORK}/${into} -G ${GENERATOR}
      -D BATON_SOURCE_DIR=${SOURCE} -D CMAKE_CXX_COMPILER=${COMPILER}
      -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D CMAKE_BUILD_TYPE=Release ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE out)
  string(REGEX REPLACE "[ \n]+" " " out "${out}")
  set(result "${result}" PARENT_SCOPE)
  set(output "${out}" PARENT_SCOPE)
endfunction()

function(expect_refusal into wanted)
  configure(${into} ${ARGN})
  if(result EQUAL 0 OR NOT output MATCHES "${wanted}")
    message(SEND_ERROR "${ARGN} should say \"${wanted}\", and said: ${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
expect_refusal(unknown "there is no store \"mongo\"; known are memory, sqlite, postgres"
               -D BATON_STORES=mongo)
expect_refusal(missing "the store postgres needs PostgreSQL .apt install libpq-dev."
               -D BATON_STORES=postgres -D CMAKE_DISABLE_FIND_PACKAGE_PostgreSQL=ON)

configure(build -D BATON_STORES=sqlite)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "it cannot be configured: ${output}")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build RESULT_VARIABLE result
                OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "it cannot be built: ${out}")
endif()
file(GLOB_RECURSE built RELATIVE ${WORK}/build ${WORK}/build/*.a)
list(TRANSFORM built REPLACE ".*/libbaton_(.*)\\.a" "\\1")
list(SORT built)
set(linked clock core json open policy runtime store_common store_memory store_sqlite)
if(NOT built STREQUAL linked)
  message(SEND_ERROR "built was ${built}, and not ${linked}")
endif()
execute_process(COMMAND ${WORK}/build/programs ${WORK}/locks.db RESULT_VARIABLE result
                OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT result EQUAL 0 OR NOT out MATCHES "held with token [1-9]")
  message(SEND_ERROR "the program said: ${out}")
endif()
