# Makes the Debian packages from a build, looks at what they are and have, and runs what they would
# install. `./dev package --test` also installs and removes them.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGV} failed:\n${out}${err}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

function(expect what text pattern)
  if(NOT "${text}" MATCHES "${pattern}")
    message(SEND_ERROR "${what} does not match ${pattern}:\n${text}")
  endif()
endfunction()

function(expect_no what text pattern)
  if("${text}" MATCHES "${pattern}")
    message(SEND_ERROR "${what} matches ${pattern}:\n${text}")
  endif()
endfunction()

function(check_fields package)
  run(dpkg-deb -f "${file_of_${package}}")
  set(fields "\n${output}")
  expect(${package} "${fields}" "\nPackage: ${package}\n")
  expect(${package} "${fields}" "\nVersion: ${VERSION}-[0-9]+\n")
  expect(${package} "${fields}" "\nMaintainer: [^\n]+ <[^\n]+@[^\n]+>\n")
  expect(${package} "${fields}" "\nSection: [a-z]+\n")
  expect(${package} "${fields}" "\nPriority: optional\n")
  expect(${package} "${fields}" "\nDescription: [a-zC][^\n]+\n [A-Za-z][^\n]+\n")
  string(REGEX MATCH "\nDepends: [^\n]*" depends "${fields}")
  foreach(library IN LISTS ARGN)
    expect("Depends of ${package}" "${depends}" " ${library}[ ,\n]|${library}$")
  endforeach()
  set(depends_of_${package} "${depends}" PARENT_SCOPE)
endfunction()

# What every package has, and the files that are named; nothing is outside of /usr and /etc.
function(check_files package)
  run(dpkg-deb -c "${file_of_${package}}")
  expect_no(${package} "${output}" " \\./(usr/local|lib|bin|opt|home|var)/")
  expect_no(${package} "${output}" "\n[^ ]+ (root/[^r]|[^r])")
  foreach(file IN ITEMS usr/share/doc/${package}/copyright
                        usr/share/doc/${package}/changelog.Debian.gz LISTS ARGN)
    string(REPLACE "." "\\." pattern "${file}")
    expect(${package} "${output}" " \\./${pattern}( -> [^\n]+)?\n")
  endforeach()
  run(dpkg-deb -x "${file_of_${package}}" "${WORK}/unpacked")
endfunction()

# Nothing of a package starts a service or lets one start at the next boot.
function(check_scripts package)
  file(MAKE_DIRECTORY "${WORK}/control")
  run(dpkg-deb -e "${file_of_${package}}" "${WORK}/control/${package}")
  foreach(script IN ITEMS postinst prerm postrm)
    set(file "${WORK}/control/${package}/${script}")
    run(sh -n "${file}")
    file(READ "${file}" text)
    string(REGEX REPLACE "#[^\n]*" "" text "${text}")
    expect_no("${package}.${script}" "${text}" "start|enable|preset|rm -r")
  endforeach()
endfunction()

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}/unpacked")
execute_process(COMMAND "${CPACK}" -G DEB -B "${WORK}" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip
                WORKING_DIRECTORY "${BUILD}" RESULT_VARIABLE result OUTPUT_VARIABLE out
                ERROR_VARIABLE out)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "cpack failed:\n${out}")
endif()
foreach(package IN ITEMS baton baton-apps libbaton0 libbaton-dev)
  file(GLOB file_of_${package} "${WORK}/${package}_${VERSION}-*_*.deb")
  list(LENGTH file_of_${package} found)
  if(NOT found EQUAL 1)
    message(FATAL_ERROR "${found} files are the package ${package}:\n${out}")
  endif()
endforeach()

check_fields(baton libc6 libsqlite3-0 libpq5 libcurl4 libyaml-cpp0\\.7)
check_fields(baton-apps libc6 libsqlite3-0 libpq5 libssl3)
check_fields(libbaton0 libc6 libpq5)
check_fields(libbaton-dev "libbaton0 \\(= [^)]*\\)" libsqlite3-dev libpq-dev libhiredis-dev libcurl4-openssl-dev)
expect_no("Depends of baton" "${depends_of_baton}${depends_of_baton-apps}" "-dev")

set(unit usr/lib/systemd/system)
check_files(baton usr/bin/baton usr/share/man/man1/baton.1.gz usr/share/man/man1/baton-run.1.gz
  usr/share/bash-completion/completions/baton usr/share/fish/vendor_completions.d/baton.fish
  usr/share/zsh/vendor-completions/_baton usr/share/doc/baton/baton.spdx.json
  "${unit}/baton-relay@.service" "${unit}/baton-cron.service" "${unit}/baton-elect@.service"
  "${unit}/baton-run@.service" "${unit}/baton-run@.timer" usr/lib/sysusers.d/baton-relay.conf
  usr/lib/sysusers.d/baton-cron.conf usr/lib/sysusers.d/baton.conf
  usr/share/doc/baton/README.md usr/share/doc/baton/docs/start.md
  usr/share/doc/baton/docs/stores/redis.md usr/share/doc/baton/examples/report/main.cc
  usr/share/doc/baton/examples/report/CMakeLists.txt)
check_files(baton-apps usr/bin/baton-gateway usr/bin/warehouse usr/bin/documents
  usr/share/man/man1/documents.1.gz "${unit}/documents@.service" "${unit}/documents.target"
  etc/documents/documents.yaml usr/share/doc/baton-apps/examples/warehouse.yaml)
check_files(libbaton0 usr/lib/libbaton.so.0)
check_files(libbaton-dev usr/include/baton/locks.h)
file(GLOB_RECURSE libraries "${WORK}/unpacked/usr/lib/libbaton_open.a")
if(NOT libraries)
  message(SEND_ERROR "libbaton-dev has no libbaton_open.a")
endif()
check_scripts(baton)
check_scripts(baton-apps)
run(dpkg-deb -I "${file_of_libbaton0}" shlibs triggers)
expect("shlibs of libbaton0" "${output}" "^libbaton 0 libbaton0 \\(>= ${VERSION}-[0-9]+\\)\n")
expect("triggers of libbaton0" "${output}" "\nactivate-noawait ldconfig\n")
run(dpkg-deb -I "${file_of_libbaton0}")
expect_no("control files of libbaton0" "${output}" "postinst|postrm")
file(READ "${WORK}/control/baton-apps/conffiles" conffiles)
expect("conffiles of baton-apps" "${conffiles}" "^/etc/documents/documents.yaml\n$")

# The programs that the units start are those of the packages.
file(GLOB units "${WORK}/unpacked/${unit}/*.service")
foreach(file IN LISTS units)
  file(STRINGS "${file}" line REGEX "^ExecStart=")
  string(REGEX MATCH "/[^ ]+" program "${line}")
  if(NOT EXISTS "${WORK}/unpacked${program}")
    message(SEND_ERROR "${file} starts ${program}, which no package has")
  endif()
endforeach()

run("${WORK}/unpacked/usr/bin/baton" version)
expect("baton version" "${output}" "^baton ${VERSION}\n$")
run("${WORK}/unpacked/usr/bin/baton" run job --store "sqlite:${WORK}/locks.db" -- echo ran)
expect("baton run" "${output}" "^ran\n$")
foreach(program IN ITEMS baton-gateway warehouse documents)
  run("${WORK}/unpacked/usr/bin/${program}" --help)
  expect(${program} "${output}" "Usage: ${program} ")
endforeach()

# A user's program, by pkg-config alone.
file(GLOB files "${WORK}/unpacked/usr/lib/pkgconfig/baton-*.pc")
set(components "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WLE)
  list(APPEND components ${name})
endforeach()
set(pkgconfig ${CMAKE_COMMAND} -E env "PKG_CONFIG_PATH=${WORK}/unpacked/usr/lib/pkgconfig"
    pkg-config)
run(${pkgconfig} --print-errors --exists ${components})
run(${pkgconfig} --cflags --libs baton-open)
separate_arguments(flags UNIX_COMMAND "${output}")
run("${COMPILER}" -std=c++20 "${CONSUMER}/main.cc" -o "${WORK}/consumer" ${flags})
run("${WORK}/consumer" "${WORK}/consumer.db")
expect(consumer "${output}" "held with token [1-9]")
