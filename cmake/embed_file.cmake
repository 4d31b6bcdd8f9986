# cmake -DINPUT= -DOUTPUT= -DNAMESPACE= -DVARIABLE= -P embed_file.cmake
# Writes INPUT as a string constant into the header OUTPUT. Called by baton_embed().

file(READ "${INPUT}" text)
set(delimiter "BATON_TEXT")
string(FIND "${text}" ")${delimiter}\"" clash)
if(NOT clash EQUAL -1)
  message(FATAL_ERROR "${INPUT} contains )${delimiter}\", which ends the embedded text early")
endif()

file(WRITE "${OUTPUT}" "#pragma once

#include <string_view>

namespace ${NAMESPACE} {

inline constexpr std::string_view ${VARIABLE} = R\"${delimiter}(${text})${delimiter}\";

}  // namespace ${NAMESPACE}
")
