# packaging/README.md says what of this was checked, and where the sources come from.
vcpkg_check_linkage(ONLY_STATIC_LIBRARY)

set(SOURCE_PATH "${CURRENT_PORT_DIR}/../../..")

# Only what was asked for, whatever else is installed.
set(stores memory)
foreach(store IN ITEMS sqlite postgres redis etcd kubernetes)
  if("${store}" IN_LIST FEATURES)
    list(APPEND stores ${store})
  endif()
endforeach()
if("postgres" IN_LIST FEATURES)
  list(APPEND stores postgres_advisory)
endif()
vcpkg_check_features(OUT_FEATURE_OPTIONS feature_options
  INVERTED_FEATURES
    metrics CMAKE_DISABLE_FIND_PACKAGE_prometheus-cpp
    metrics CMAKE_DISABLE_FIND_PACKAGE_Boost
    rabbitmq CMAKE_DISABLE_FIND_PACKAGE_RabbitMQ)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    "-DBATON_STORES=${stores}"
    -DBATON_BUILD_PROGRAMS=OFF
    -DBATON_BUILD_TESTS=OFF
    -DBATON_TOGETHER=ON
    -DBATON_WERROR=OFF
    ${feature_options})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/baton)

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
