# cmake -DSPEC=file -DROOT=directory -DOUTPUT=file -P mutate.cmake
#
# Writes a copy of the source that SPEC names, with its flaw put in. A text to replace that is not
# found exactly once is an error: a mutant of code that has changed must not pass for one.
include("${SPEC}")
file(READ "${ROOT}/${FILE}" content)
set(at 1)
while(DEFINED REPLACE_${at})
  string(FIND "${content}" "${REPLACE_${at}}" first)
  string(FIND "${content}" "${REPLACE_${at}}" last REVERSE)
  if(first EQUAL -1)
    message(FATAL_ERROR "${FILE} has changed; change this mutant with it: ${SPEC}\n"
                        "looked for: ${REPLACE_${at}}")
  endif()
  if(NOT first EQUAL last)
    message(FATAL_ERROR "${FILE} has this more than once; say more in ${SPEC}\n"
                        "found: ${REPLACE_${at}}")
  endif()
  string(REPLACE "${REPLACE_${at}}" "${WITH_${at}}" content "${content}")
  math(EXPR at "${at} + 1")
endwhile()
if(at EQUAL 1)
  message(FATAL_ERROR "${SPEC}: nothing to replace")
endif()
file(WRITE "${OUTPUT}" "${content}")
