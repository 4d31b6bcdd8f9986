# cmake -DROWS=directory -DNAMES=a,b,… -P table.cmake
#
# Prints what each mutant's test found, in one table. A mutant without a finding survived or did
# not run.
string(REPLACE "," ";" names "${NAMES}")
set(survivors)
foreach(name IN LISTS names)
  if(EXISTS "${ROWS}/${name}.row")
    file(READ "${ROWS}/${name}.row" row)
  else()
    set(row "${name}: NOT KILLED\n")
    list(APPEND survivors ${name})
  endif()
  string(APPEND table "${row}")
endforeach()
execute_process(COMMAND "${CMAKE_COMMAND}" -E echo "${table}")
if(survivors)
  message(FATAL_ERROR "not killed: ${survivors}")
endif()
