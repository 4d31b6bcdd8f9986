# What a user's find_package(baton COMPONENTS ...) finds.
#
# Each component is exported on its own, and only the packages of the components asked for are
# looked up: a program on SQLite does not need libpq's headers.

include_guard(GLOBAL)
include(CMakePackageConfigHelpers)

set(BATON_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/baton")

# The package that provides each third-party target we link.
set(BATON_PACKAGE_OF_Threads::Threads Threads)
set(BATON_PACKAGE_OF_SQLite::SQLite3 SQLite3)
set(BATON_PACKAGE_OF_PostgreSQL::PostgreSQL PostgreSQL)
set(BATON_PACKAGE_OF_CURL::libcurl CURL)
set(BATON_PACKAGE_OF_fmt::fmt fmt)
set(BATON_PACKAGE_OF_yaml-cpp yaml-cpp)

# Links third-party targets privately and sets `packages` to what a user of the static library must
# find again. Header-only libraries are compiled in and leave no trace.
function(baton_link_private target packages)
  set(found "")
  foreach(lib IN LISTS ARGN)
    if(NOT TARGET ${lib})
      message(FATAL_ERROR "${target}: no target ${lib}; is its package found at the top?")
    endif()
    if(DEFINED BATON_PACKAGE_OF_${lib})
      target_link_libraries(${target} PRIVATE ${lib})
      list(APPEND found "${BATON_PACKAGE_OF_${lib}}")
      continue()
    endif()
    get_target_property(type ${lib} TYPE)
    if(NOT type STREQUAL "INTERFACE_LIBRARY")
      message(FATAL_ERROR "${target}: say in cmake/BatonPackage.cmake which package has ${lib}")
    endif()
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${lib}>)
  endforeach()
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "STATIC_LIBRARY")
    set(found "")  # a shared library brings its private dependencies itself
  endif()
  set(${packages} "${found}" PARENT_SCOPE)
endfunction()

function(baton_export_component name depends packages)
  install(TARGETS baton_${name} EXPORT baton-${name}
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime
      NAMELINK_COMPONENT development)
  set_target_properties(baton_${name} PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(EXPORT baton-${name} NAMESPACE baton:: FILE baton-${name}.cmake
    DESTINATION "${BATON_PACKAGE_DIR}" COMPONENT development)
  set_property(GLOBAL APPEND PROPERTY BATON_COMPONENTS ${name})
  set_property(GLOBAL APPEND_STRING PROPERTY BATON_COMPONENT_TABLE
    "set(_baton_${name}_depends ${depends})\nset(_baton_${name}_packages ${packages})\n")
endfunction()

function(baton_install_package)
  get_property(BATON_COMPONENTS GLOBAL PROPERTY BATON_COMPONENTS)
  get_property(BATON_COMPONENT_TABLE GLOBAL PROPERTY BATON_COMPONENT_TABLE)
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/baton-config.cmake.in"
    "${PROJECT_BINARY_DIR}/baton-config.cmake" INSTALL_DESTINATION "${BATON_PACKAGE_DIR}")
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/baton-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/baton-config.cmake"
                "${PROJECT_BINARY_DIR}/baton-config-version.cmake"
    DESTINATION "${BATON_PACKAGE_DIR}" COMPONENT development)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/baton" "${BATON_GENERATED_DIR}/include/baton"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development FILES_MATCHING PATTERN "*.h")
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
    COMPONENT runtime)
endfunction()
