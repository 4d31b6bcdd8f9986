# Writes the manual pages of a program, which prints them itself, compressed as Debian wants them.
#
#   cmake -D PROGRAM=file -D OUTPUT=directory -D GZIP=gzip -P man_pages.cmake
cmake_minimum_required(VERSION 3.25)

# A page goes by the name in its first line, `.TH "NAME" …`.
function(write_page text)
  if(NOT text MATCHES "^\\.TH \"([A-Z0-9\\-]+)\" 1 ")
    message(FATAL_ERROR "a manual page begins otherwise than expected:\n${text}")
  endif()
  string(REPLACE "\\" "" name "${CMAKE_MATCH_1}")
  string(TOLOWER "${name}" name)
  file(WRITE "${OUTPUT}/${name}.1" "${text}")
  execute_process(COMMAND "${GZIP}" -9nf "${OUTPUT}/${name}.1" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE "${OUTPUT}")
execute_process(COMMAND "${PROGRAM}" --help=man OUTPUT_VARIABLE rest COMMAND_ERROR_IS_FATAL ANY)
string(FIND "${rest}" "\n.TH " end)
while(NOT end EQUAL -1)
  math(EXPR next "${end} + 1")
  string(SUBSTRING "${rest}" 0 ${next} page)
  string(SUBSTRING "${rest}" ${next} -1 rest)
  write_page("${page}")
  string(FIND "${rest}" "\n.TH " end)
endwhile()
write_page("${rest}")
