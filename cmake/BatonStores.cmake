# Which stores are part of this build.
#
#   -D "BATON_STORES=sqlite;postgres"
#
# Empty: all whose packages the machine has. The store memory needs none and is always there. The
# folder of a store asks BATON_WITH_<store>, and not whether a package was found: a project around
# this one may have found it for itself.

include_guard(GLOBAL)

set(BATON_STORES "" CACHE STRING
    "The stores to build, as sqlite;postgres; empty: all whose packages are here")

set(BATON_KNOWN_STORES sqlite postgres postgres_advisory redis etcd kubernetes)
set(BATON_STORE_PACKAGES_sqlite SQLite3)
set(BATON_STORE_PACKAGES_postgres PostgreSQL)
set(BATON_STORE_PACKAGES_postgres_advisory PostgreSQL)
set(BATON_STORE_PACKAGES_redis Hiredis OpenSSL)
# Also where CMAKE_FIND_PACKAGE_PREFER_CONFIG is on: Debian's own file for it does not work.
set(BATON_FIND_Hiredis MODULE)
set(BATON_STORE_PACKAGES_etcd CURL)
set(BATON_STORE_PACKAGES_kubernetes CURL)
# The advisory locks use the sessions of the store postgres.
set(BATON_STORE_NEEDS_postgres_advisory postgres)

# Debian's package of what find_package looks for.
set(BATON_PACKAGES_OF_DEBIAN "")
foreach(pair IN ITEMS SQLite3=libsqlite3-dev PostgreSQL=libpq-dev Hiredis=libhiredis-dev
        OpenSSL=libssl-dev CURL=libcurl4-openssl-dev nlohmann_json=nlohmann-json3-dev
        yaml-cpp=libyaml-cpp-dev RabbitMQ=librabbitmq-dev prometheus-cpp=prometheus-cpp-dev
        Boost=libboost-dev)
  string(REPLACE "=" ";" pair "${pair}")
  list(GET pair 0 package)
  list(GET pair 1 BATON_DEBIAN_${package})
  list(APPEND BATON_PACKAGES_OF_DEBIAN ${package})
endforeach()

# Sets BATON_WITH_<store> for every known store, and finds what they need. A macro, because what
# find_package sets belongs to its caller.
macro(baton_select_stores)
  set(_baton_stores ${BATON_STORES})
  if(NOT _baton_stores)
    set(_baton_stores ${BATON_KNOWN_STORES})
  endif()
  foreach(_baton_store IN LISTS _baton_stores)
    if(NOT _baton_store STREQUAL "memory" AND NOT _baton_store IN_LIST BATON_KNOWN_STORES)
      list(JOIN BATON_KNOWN_STORES ", " _baton_known)
      message(FATAL_ERROR "BATON_STORES: there is no store \"${_baton_store}\"; "
                          "known are memory, ${_baton_known}")
    endif()
    list(APPEND _baton_stores ${BATON_STORE_NEEDS_${_baton_store}})
  endforeach()
  foreach(_baton_store IN LISTS BATON_KNOWN_STORES)
    set(BATON_WITH_${_baton_store} ON)
    set(_baton_why "")
    if(NOT _baton_store IN_LIST _baton_stores)
      set(_baton_why "it was built with BATON_STORES=${BATON_STORES}")
    else()
      foreach(_baton_package IN LISTS BATON_STORE_PACKAGES_${_baton_store})
        find_package(${_baton_package} ${BATON_FIND_${_baton_package}} QUIET)
        if(NOT ${_baton_package}_FOUND)
          set(_baton_hint "${_baton_package} (apt install ${BATON_DEBIAN_${_baton_package}})")
          set(_baton_why "it was built without ${_baton_hint}")
          if(BATON_STORES)
            message(FATAL_ERROR "BATON_STORES: the store ${_baton_store} needs ${_baton_hint}")
          endif()
        endif()
      endforeach()
    endif()
    if(_baton_why)
      set(BATON_WITH_${_baton_store} OFF)
      baton_leave_out(store_${_baton_store} BECAUSE "${_baton_why}")
    endif()
  endforeach()
endmacro()
