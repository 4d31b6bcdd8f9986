# What a user's find_package(baton COMPONENTS ...) finds.
#
# Each component is exported on its own, and only the packages of the components asked for are
# looked up: a program on SQLite does not need libpq's headers.

include_guard(GLOBAL)
include(CMakePackageConfigHelpers)
include(BatonPkgConfig)

set(BATON_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/baton")

# The package that provides each third-party target we link.
set(BATON_PACKAGE_OF_Threads::Threads Threads)
set(BATON_PACKAGE_OF_SQLite::SQLite3 SQLite3)
set(BATON_PACKAGE_OF_PostgreSQL::PostgreSQL PostgreSQL)
set(BATON_PACKAGE_OF_Hiredis::hiredis Hiredis)
set(BATON_PACKAGE_OF_OpenSSL::SSL OpenSSL)
set(BATON_PACKAGE_OF_RabbitMQ::rabbitmq RabbitMQ)
set(BATON_PACKAGE_OF_CURL::libcurl CURL)
set(BATON_PACKAGE_OF_fmt::fmt fmt)
set(BATON_PACKAGE_OF_yaml-cpp yaml-cpp)
set(BATON_PACKAGE_OF_prometheus-cpp::core prometheus-cpp)

# Links third-party targets of which users need the headers, and sets `packages` to what provides
# them.
function(baton_link_public target packages)
  set(found "")
  foreach(lib IN LISTS ARGN)
    target_link_libraries(${target} PUBLIC ${lib})
    list(APPEND found "${BATON_PACKAGE_OF_${lib}}")
  endforeach()
  set(${packages} "${found}" PARENT_SCOPE)
endfunction()

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
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library
      NAMELINK_COMPONENT development)
  baton_find_libraries_in(baton_${name} "$ORIGIN")
  install(EXPORT baton-${name} NAMESPACE baton:: FILE baton-${name}.cmake
    DESTINATION "${BATON_PACKAGE_DIR}" COMPONENT development)
  set_property(GLOBAL APPEND PROPERTY BATON_COMPONENTS ${name})
  set_property(GLOBAL APPEND PROPERTY BATON_PACKAGES ${packages})
  baton_install_pkgconfig(${name} "${depends}" "${packages}")
  set_property(GLOBAL APPEND_STRING PROPERTY BATON_COMPONENT_TABLE
    "set(_baton_${name}_depends ${depends})\nset(_baton_${name}_packages ${packages})\n")
endfunction()

# baton_leave_out(NAME [PACKAGES package...] [STORES store...] [BECAUSE reason]): says to the users
# who ask for a component why it is not part of this build.
function(baton_leave_out name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "BECAUSE" "PACKAGES;STORES")
  set(reason "${arg_BECAUSE}")
  foreach(package IN LISTS arg_PACKAGES)
    if(NOT ${package}_FOUND)
      set(reason "it was built without ${package} (apt install ${BATON_DEBIAN_${package}})")
    endif()
  endforeach()
  if(arg_STORES)
    list(JOIN arg_STORES " and " stores)
    set(reason "it needs the stores ${stores}, and was built without one")
  endif()
  set_property(GLOBAL APPEND PROPERTY BATON_LEFT_OUT ${name})
  set_property(GLOBAL APPEND_STRING PROPERTY BATON_LEFT_OUT_TABLE
    "set(_baton_left_out_${name} \"${reason}\")\n")
endfunction()

# The target sbom: which packages the installed programs link against, as SPDX. See sbom.cmake.
function(baton_add_sbom)
  get_property(programs GLOBAL PROPERTY BATON_INSTALLED_PROGRAMS)
  find_program(BATON_READELF readelf)
  find_file(BATON_JSON_HEADER nlohmann/json.hpp)
  find_file(BATON_BOOST_HEADER boost/version.hpp HINTS ${Boost_INCLUDE_DIRS})
  find_file(BATON_CLI_HEADER CLI/CLI.hpp)
  mark_as_advanced(BATON_READELF BATON_JSON_HEADER BATON_BOOST_HEADER BATON_CLI_HEADER)
  if(NOT programs OR NOT BATON_READELF OR BATON_SANITIZE)
    return()
  endif()
  set(headers ${BATON_JSON_HEADER} ${BATON_BOOST_HEADER} ${BATON_CLI_HEADER})
  list(FILTER headers EXCLUDE REGEX "-NOTFOUND$")
  list(TRANSFORM programs REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE files)
  set(output "${PROJECT_BINARY_DIR}/baton.spdx.json")
  set(script "${PROJECT_SOURCE_DIR}/cmake/sbom.cmake")
  add_custom_command(OUTPUT "${output}"
    COMMAND ${CMAKE_COMMAND} -D "OUTPUT=${output}" -D VERSION=${PROJECT_VERSION}
      -D LICENSE=Apache-2.0 -D "PROGRAMS=${files}" -D "HEADERS=${headers}"
      -D "READELF=${BATON_READELF}" -P "${script}"
    DEPENDS ${programs} "${script}"
    COMMENT "Writing the SBOM"
    VERBATIM)
  add_custom_target(sbom ALL DEPENDS "${output}")
  add_dependencies(${BATON_PROGRAMS_TARGET} sbom)
  install(FILES "${output}" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT runtime)
endfunction()

function(baton_install_package)
  get_property(BATON_COMPONENTS GLOBAL PROPERTY BATON_COMPONENTS)
  get_property(BATON_COMPONENT_TABLE GLOBAL PROPERTY BATON_COMPONENT_TABLE)
  get_property(BATON_LEFT_OUT GLOBAL PROPERTY BATON_LEFT_OUT)
  get_property(BATON_LEFT_OUT_TABLE GLOBAL PROPERTY BATON_LEFT_OUT_TABLE)
  set(BATON_DEBIAN_TABLE "")
  foreach(package IN LISTS BATON_PACKAGES_OF_DEBIAN)
    string(APPEND BATON_DEBIAN_TABLE
      "set(_baton_debian_${package} ${BATON_DEBIAN_${package}})\n")
  endforeach()
  # Not beside bin/: with that in PATH, find_package would take this one, which has no components yet.
  set(made "${BATON_GENERATED_DIR}/package")
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/baton-config.cmake.in"
    "${made}/baton-config.cmake" INSTALL_DESTINATION "${BATON_PACKAGE_DIR}")
  write_basic_package_version_file("${made}/baton-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
  install(FILES "${made}/baton-config.cmake" "${made}/baton-config-version.cmake"
                "${PROJECT_SOURCE_DIR}/cmake/FindHiredis.cmake"
                "${PROJECT_SOURCE_DIR}/cmake/FindRabbitMQ.cmake"
    DESTINATION "${BATON_PACKAGE_DIR}" COMPONENT development)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/baton" "${BATON_GENERATED_DIR}/include/baton"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development FILES_MATCHING PATTERN "*.h")
  install(FILES "${PROJECT_SOURCE_DIR}/SECURITY.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
    COMPONENT runtime)
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
    COMPONENT unpackaged)
endfunction()
