# baton_mutate(SPEC DIRECTORY VARIABLE) makes, at build time, a copy of a source with a flaw put in,
# below DIRECTORY, and sets VARIABLE to its path.
#
# SPEC is a file that sets FILE (the source to change, below the project), and REPLACE_n and WITH_n.
# A program that is linked with the copy has the flaw: the linker takes it in place of the sound
# source, which stays in its library. So that it can, the source is compiled by itself there
# (SKIP_UNITY_BUILD_INCLUSION).

include_guard(GLOBAL)

set(BATON_MUTATE_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/mutate.cmake")

function(baton_mutate spec directory variable)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${spec}")
  include("${spec}")
  set(mutated "${directory}/${FILE}")
  add_custom_command(OUTPUT "${mutated}"
    COMMAND "${CMAKE_COMMAND}" -DSPEC=${spec} -DROOT=${PROJECT_SOURCE_DIR} -DOUTPUT=${mutated}
            -P "${BATON_MUTATE_SCRIPT}"
    DEPENDS "${PROJECT_SOURCE_DIR}/${FILE}" "${spec}" "${BATON_MUTATE_SCRIPT}"
    VERBATIM)
  set(${variable} "${mutated}" PARENT_SCOPE)
endfunction()
