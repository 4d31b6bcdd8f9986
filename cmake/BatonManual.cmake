# The manual pages of the programs, made by the programs themselves. See man_pages.cmake.

include_guard(GLOBAL)

# The target manual: the pages of every installed program, in a directory of its own.
function(baton_add_manual)
  get_property(programs GLOBAL PROPERTY BATON_INSTALLED_PROGRAMS)
  find_program(BATON_GZIP gzip)
  mark_as_advanced(BATON_GZIP)
  if(NOT programs OR NOT BATON_GZIP OR BATON_SANITIZE OR CMAKE_CROSSCOMPILING
     OR NOT BATON_INSTALL)
    return()
  endif()
  set(script "${PROJECT_SOURCE_DIR}/cmake/man_pages.cmake")
  set(stamps "")
  foreach(program IN LISTS programs)
    set(directory "${PROJECT_BINARY_DIR}/manual/${program}")
    add_custom_command(OUTPUT "${directory}.stamp"
      COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${program}> -D "OUTPUT=${directory}"
        -D "GZIP=${BATON_GZIP}" -P "${script}"
      COMMAND ${CMAKE_COMMAND} -E touch "${directory}.stamp"
      DEPENDS ${program} "${script}"
      COMMENT "Writing the manual of ${program}"
      VERBATIM)
    list(APPEND stamps "${directory}.stamp")
    get_target_property(component ${program} BATON_COMPONENT)
    install(DIRECTORY "${directory}/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1"
      COMPONENT ${component})
  endforeach()
  add_custom_target(manual ALL DEPENDS ${stamps})
  add_dependencies(${BATON_PROGRAMS_TARGET} manual)
endfunction()
