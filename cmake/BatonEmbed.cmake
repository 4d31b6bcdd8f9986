# baton_embed(target file...) compiles text files into a target, so that SQL and Lua live in files
# of their own and need not be found at run time.
#
# In src/store/postgres/CMakeLists.txt, after the target is made:
#
#   baton_embed(baton_store_postgres schema.sql apply.sql)
#
# and in a source of that target:
#
#   #include "store/postgres/schema.sql.h"
#   ... baton::embedded::store_postgres::schema_sql ...       // a constexpr std::string_view
#
# The namespace is the folder below src/ (or below the project), the name is the file's, each with
# everything but letters and digits turned into '_'. An edited file is embedded again at the next
# build.

include_guard(GLOBAL)

set(BATON_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/embed_file.cmake")

function(baton_embed target)
  set(root "${BATON_GENERATED_DIR}/embedded")
  set(base "${PROJECT_SOURCE_DIR}/src")
  cmake_path(IS_PREFIX base "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE inside)
  if(NOT inside)
    set(base "${PROJECT_SOURCE_DIR}")
  endif()
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE
               OUTPUT_VARIABLE input)
    cmake_path(RELATIVE_PATH input BASE_DIRECTORY "${base}" OUTPUT_VARIABLE relative)
    cmake_path(GET relative PARENT_PATH folder)
    cmake_path(GET relative FILENAME name)
    string(REGEX REPLACE "[^A-Za-z0-9]" "_" namespace "${folder}")
    string(REGEX REPLACE "[^A-Za-z0-9]" "_" variable "${name}")
    set(output "${root}/${relative}.h")
    add_custom_command(
      OUTPUT "${output}"
      COMMAND "${CMAKE_COMMAND}" "-DINPUT=${input}" "-DOUTPUT=${output}"
              "-DNAMESPACE=baton::embedded::${namespace}" "-DVARIABLE=${variable}"
              -P "${BATON_EMBED_SCRIPT}"
      DEPENDS "${input}" "${BATON_EMBED_SCRIPT}"
      COMMENT "Embedding ${relative}"
      VERBATIM)
    target_sources(${target} PRIVATE "${output}")
  endforeach()
  target_include_directories(${target} PRIVATE "${root}")
endfunction()
