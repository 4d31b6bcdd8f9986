# The headers that nearly every source includes, read once instead of hundreds of times: a third of
# a clean build. Sources still include what they use, and the preset tsan, which does without this,
# notices when one does not.

option(BATON_PRECOMPILE "Precompile the headers that most sources include"
       ${PROJECT_IS_TOP_LEVEL})
if(BATON_BUILD_FUZZ)
  set(BATON_PRECOMPILE OFF)
endif()

set(BATON_USUAL_HEADERS
  <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <deque> <filesystem>
  <functional> <map> <memory> <mutex> <optional> <span> <stop_token> <string> <string_view>
  <thread> <utility> <vector>)

# A precompiled header serves all targets with the same flags, so there is one for the libraries, one
# for the programs and one for the tests; each belongs to a target with a single source.
function(baton_precompile_for kind)
  if(NOT BATON_PRECOMPILE OR TARGET baton_${kind}_headers)
    return()
  endif()
  set(target baton_${kind}_headers)
  set(source "${BATON_GENERATED_DIR}/${kind}_headers.cc")
  file(CONFIGURE OUTPUT "${source}" CONTENT "int main() {}\n")  # nobody runs it
  if(kind STREQUAL "library")
    add_library(${target} OBJECT EXCLUDE_FROM_ALL "${source}")
  else()
    add_executable(${target} EXCLUDE_FROM_ALL "${source}")
    set_target_properties(${target} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${BATON_GENERATED_DIR}")  # nobody wants it in PATH
  endif()
  baton_target_defaults(${target})
  if(NOT kind STREQUAL "test")
    baton_harden(${target})
  endif()
  target_precompile_headers(${target} PRIVATE ${BATON_USUAL_HEADERS})
  if(kind STREQUAL "test")
    baton_test_flags(${target})
    target_link_libraries(${target} PRIVATE GTest::gtest)
    target_precompile_headers(${target} PRIVATE <gtest/gtest.h>)
  endif()
endfunction()

function(baton_precompile target kind)
  if(BATON_PRECOMPILE)
    baton_precompile_for(${kind})
    target_precompile_headers(${target} REUSE_FROM baton_${kind}_headers)
  endif()
endfunction()
