# A pkg-config file for each component, from the same table as the CMake package: baton-open.pc for
# baton::open.
#
#   c++ -std=c++20 report.cc $(pkg-config --cflags --libs baton-open)
#
# What a static library needs is among its own Libs and not in Libs.private: `pkg-config --static`
# would ask the same of libcurl and libpq, whose own needs Debian does not install with them.

include_guard(GLOBAL)

set(BATON_LINK_OF_Threads -pthread)
set(BATON_LINK_OF_SQLite3 -lsqlite3)
set(BATON_LINK_OF_PostgreSQL -lpq)
set(BATON_LINK_OF_Hiredis -lhiredis)
set(BATON_LINK_OF_OpenSSL -lssl -lcrypto)
set(BATON_LINK_OF_RabbitMQ -lrabbitmq)
set(BATON_LINK_OF_CURL -lcurl)
set(BATON_LINK_OF_fmt -lfmt)
set(BATON_LINK_OF_yaml-cpp -lyaml-cpp)
set(BATON_LINK_OF_prometheus-cpp -lprometheus-cpp-core)

# `depends` are components, `packages` are names for find_package.
function(baton_install_pkgconfig name depends packages)
  get_target_property(output_name baton_${name} OUTPUT_NAME)
  if(output_name)
    return()  # libbaton.so, which has a file of its own
  endif()
  list(REMOVE_ITEM packages "")
  set(links "")
  foreach(package IN LISTS packages)
    if(NOT DEFINED BATON_LINK_OF_${package})
      message(FATAL_ERROR "say in cmake/BatonPkgConfig.cmake how to link with ${package}")
    endif()
    list(APPEND links ${BATON_LINK_OF_${package}})
  endforeach()
  list(REMOVE_DUPLICATES links)
  list(TRANSFORM depends PREPEND baton-)
  list(JOIN depends " " depends)
  list(JOIN links " " links)
  set(directory "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  file(RELATIVE_PATH up "/${directory}" /)  # so that a package can be unpacked anywhere
  string(REGEX REPLACE "/$" "" up "${up}")
  set(file "${BATON_GENERATED_DIR}/pkgconfig/baton-${name}.pc")
  file(CONFIGURE OUTPUT "${file}" @ONLY CONTENT "\
prefix=\${pcfiledir}/@up@
libdir=\${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: baton-@name@
Description: Component @name@ of Baton, in C++20
Version: @PROJECT_VERSION@
Requires: @depends@
Cflags: -I\${includedir}
Libs: -L\${libdir} -lbaton_@name@ @links@
")
  install(FILES "${file}" DESTINATION "${directory}" COMPONENT development)
endfunction()
