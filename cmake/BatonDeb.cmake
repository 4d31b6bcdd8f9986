# The Debian packages, made by `cpack -G DEB` in the build directory: `./dev package`.
#
#   component     package         what
#   runtime       baton           the command, its manual, completions, SBOM, units, pages for users
#   apps          baton-apps      baton-gateway, warehouse, documents, documents@.service
#   library       libbaton0       libbaton.so.0, with the C interface
#   development   libbaton-dev    static libraries, headers, CMake package, pkg-config files
#
# The component `unpackaged` is what `cmake --install` puts where Debian has
# something else. Files with EXCLUDE_FROM_ALL are for packages alone: `cmake --install` into
# /usr/local would leave units that name /usr/bin.

include_guard(GLOBAL)

set(BATON_PACKAGE_MAINTAINER "Baton maintainers <maintainers@baton.example>" CACHE STRING
    "Who answers for the Debian packages, as NAME <ADDRESS>")
set(BATON_PACKAGE_RELEASE 1 CACHE STRING "What stands behind the version of the Debian packages")

# What Debian's policy asks of each package beside its files, and what lintian need not say.
function(_baton_install_debian_documents component package made)
  set(documents "share/doc/${package}")
  install(FILES "${made}/changelog.Debian.gz" "${made}/changelog.gz"
                "${PROJECT_SOURCE_DIR}/deploy/debian/copyright"
    DESTINATION "${documents}" COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES "${PROJECT_SOURCE_DIR}/deploy/debian/${package}.lintian-overrides"
    RENAME ${package} DESTINATION share/lintian/overrides COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

function(_baton_write_changelogs made)
  # SOURCE_DATE_EPOCH, if it is set, makes the packages the same every time.
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  set(version "${PROJECT_VERSION}-${BATON_PACKAGE_RELEASE}")
  file(WRITE "${made}/changelog.Debian"
    "baton (${version}) bookworm; urgency=medium\n\n"
    "  * Built from version ${PROJECT_VERSION}; changelog.gz says what is new in it.\n\n"
    " -- ${BATON_PACKAGE_MAINTAINER}  ${date}\n")
  file(COPY_FILE "${PROJECT_SOURCE_DIR}/CHANGELOG.md" "${made}/changelog")
  execute_process(COMMAND "${BATON_GZIP}" -9nf "${made}/changelog.Debian" "${made}/changelog"
                  COMMAND_ERROR_IS_FATAL ANY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/CHANGELOG.md")
endfunction()

# Units, users and settings of services, and the shell completion where Debian's zsh looks.
function(_baton_install_services)
  set(deploy "${PROJECT_SOURCE_DIR}/deploy/systemd")
  install(FILES "${deploy}/baton-cron.service" "${deploy}/baton-elect@.service"
                "${deploy}/baton-relay@.service" "${deploy}/baton-run@.service"
                "${deploy}/baton-run@.timer"
    DESTINATION lib/systemd/system COMPONENT runtime EXCLUDE_FROM_ALL)
  foreach(user IN ITEMS baton baton-cron baton-relay)
    install(FILES "${deploy}/${user}.sysusers.conf" RENAME ${user}.conf
      DESTINATION lib/sysusers.d COMPONENT runtime EXCLUDE_FROM_ALL)
  endforeach()
  install(FILES "${PROJECT_SOURCE_DIR}/src/cli/completions/baton.zsh" RENAME _baton
    DESTINATION share/zsh/vendor-completions COMPONENT runtime EXCLUDE_FROM_ALL)

  install(FILES "${deploy}/documents@.service" "${deploy}/documents.target"
    DESTINATION lib/systemd/system COMPONENT apps EXCLUDE_FROM_ALL)
  install(FILES "${deploy}/documents.sysusers.conf" RENAME documents.conf
    DESTINATION lib/sysusers.d COMPONENT apps EXCLUDE_FROM_ALL)
  install(FILES "${deploy}/documents.yaml" DESTINATION /etc/documents
    COMPONENT apps EXCLUDE_FROM_ALL)
  install(FILES "${PROJECT_SOURCE_DIR}/apps/warehouse/warehouse.yaml"
    DESTINATION share/doc/baton-apps/examples COMPONENT apps EXCLUDE_FROM_ALL)
endfunction()

# The README, the pages and the program that both begin with lie to each other as in the source, so
# that their links work.
function(_baton_install_pages)
  set(documents share/doc/baton)
  install(FILES "${PROJECT_SOURCE_DIR}/README.md"
    DESTINATION "${documents}" COMPONENT runtime EXCLUDE_FROM_ALL)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs"
    DESTINATION "${documents}" COMPONENT runtime EXCLUDE_FROM_ALL
    FILES_MATCHING PATTERN "*.md"
    PATTERN requirements.md EXCLUDE)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples/report"
    DESTINATION "${documents}/examples" COMPONENT runtime EXCLUDE_FROM_ALL)
endfunction()

# Libraries that consist of headers are in our programs; their licences want to be told.
function(_baton_install_licenses)
  foreach(package IN ITEMS libcli11-dev nlohmann-json3-dev libboost-dev)
    set(file "/usr/share/doc/${package}/copyright")
    if(EXISTS "${file}")
      file(REAL_PATH "${file}" file)
      foreach(pair IN ITEMS runtime=baton apps=baton-apps library=libbaton0
              development=libbaton-dev)
        string(REGEX MATCH "^(.*)=(.*)$" ignored "${pair}")
        install(FILES "${file}" RENAME "${package}" DESTINATION
          "share/doc/${CMAKE_MATCH_2}/compiled-in" COMPONENT ${CMAKE_MATCH_1} EXCLUDE_FROM_ALL)
      endforeach()
    endif()
  endforeach()
endfunction()

function(_baton_development_depends variable)
  get_property(packages GLOBAL PROPERTY BATON_PACKAGES)
  set(depends "")
  foreach(package IN LISTS packages)
    if(BATON_DEBIAN_${package})
      list(APPEND depends ${BATON_DEBIAN_${package}})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES depends)
  list(SORT depends)
  list(JOIN depends ", " depends)
  set(${variable} "${depends}" PARENT_SCOPE)
endfunction()

macro(_baton_describe component package section description)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${description}")
  set(scripts "${PROJECT_SOURCE_DIR}/deploy/debian/${package}")
  file(GLOB CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA CONFIGURE_DEPENDS "${scripts}/*")
endmacro()

# Includes CPack, which reads these variables: called last, at the top.
macro(baton_add_packages)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME baton)
  set(CPACK_PACKAGE_VENDOR Baton)
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # else it is the first line of each description
  set(CPACK_PACKAGE_CONTACT "${BATON_PACKAGE_MAINTAINER}")
  set(CPACK_PACKAGE_DIRECTORY "${PROJECT_SOURCE_DIR}/build/packages")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
      OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  set(CPACK_COMPONENTS_ALL runtime apps library development)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_RELEASE ${BATON_PACKAGE_RELEASE})
  set(CPACK_DEBIAN_PACKAGE_SOURCE baton)
  set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
  set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
  # Of libbaton0, the only one with a library that others link. The interface only grows.
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")

  _baton_describe(runtime baton admin
"distributed locks, leader election and scheduled jobs
The command baton runs a program on exactly one of several machines, under a
lock or while it leads, and shows and mends what is locked. It has no server
of its own: locks are kept in PostgreSQL, Redis, etcd or Kubernetes, or in an
SQLite file for the processes of one machine.
.
It also publishes the events of an outbox to a message broker, and is the
tool for outboxes, dead letters and the processors of event logs.")
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)

  _baton_describe(apps baton-apps misc
"applications built on the locks and events of Baton
baton-gateway turns signals into workflow executions, each once. warehouse
observes the tables of other systems and publishes each new row as one event.
documents is a platform of five services that process documents and talk by
events only; systemd can start each of them.
.
No service is started by the installation.")
  set(CPACK_DEBIAN_APPS_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_APPS_PACKAGE_SUGGESTS "baton (= ${PROJECT_VERSION}-${BATON_PACKAGE_RELEASE})")

  _baton_describe(library libbaton0 libs
"distributed locks and leader election, with a C interface
libbaton.so.0 has all of Baton inside that a program in C, or in a language
that calls C, needs for locks that are leases, fences and leader election.")
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
  # CPack would write scripts that call ldconfig, unless some are named. dpkg does it by a trigger,
  # so these do not exist, and CPack leaves out what does not.
  list(APPEND CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${scripts}/postinst" "${scripts}/postrm")

  _baton_describe(development libbaton-dev libdevel
"C++ library for distributed locks, leader election and jobs (development)
Static libraries and headers of Baton: locks that are leases, kept in
PostgreSQL, Redis, etcd, Kubernetes or SQLite; fences, leader election,
scheduled jobs, outboxes, inboxes and event logs.
.
CMake finds them by find_package(baton), other build systems by pkg-config.")
  _baton_development_depends(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS)
  string(PREPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libbaton0 (= ${PROJECT_VERSION}-${BATON_PACKAGE_RELEASE}), ")

  set(made "${BATON_GENERATED_DIR}/debian")
  _baton_write_changelogs("${made}")
  _baton_install_debian_documents(runtime baton "${made}")
  _baton_install_debian_documents(apps baton-apps "${made}")
  _baton_install_debian_documents(library libbaton0 "${made}")
  _baton_install_debian_documents(development libbaton-dev "${made}")
  _baton_install_licenses()
  _baton_install_services()
  _baton_install_pages()
  include(CPack)
endmacro()
