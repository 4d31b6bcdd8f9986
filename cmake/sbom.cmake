# Writes the SBOM (SPDX 2.3, JSON) of built programs: which packages they link against, as the
# programs themselves say. Debian's package database knows the rest; no network is used.
#
#   cmake -D OUTPUT=file -D VERSION=x.y.z -D LICENSE=id -D PROGRAMS=a;b -D HEADERS=file;file
#         -D READELF=readelf -P sbom.cmake
#
# HEADERS are files of libraries that consist of headers: they are compiled in and leave no trace.
cmake_minimum_required(VERSION 3.25)

# The sonames that the programs need, and where the loader finds them.
set(sonames "")
foreach(program IN LISTS PROGRAMS)
  execute_process(COMMAND ${READELF} -dW ${program} OUTPUT_VARIABLE dynamic
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "[" "<" dynamic "${dynamic}")  # a list would not be split within brackets
  string(REGEX MATCHALL "\\(NEEDED\\)[^\n]*<[^]]*" lines "${dynamic}")
  execute_process(COMMAND ldd ${program} OUTPUT_VARIABLE loaded COMMAND_ERROR_IS_FATAL ANY)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE ".*<" "" soname "${line}")
    list(APPEND sonames ${soname})
    string(REPLACE "." "\\." pattern "${soname}")
    string(REPLACE "+" "\\+" pattern "${pattern}")
    if(loaded MATCHES "(^|[\n\t/])${pattern} (=> )?(/[^ \n]+)?")
      set(path "${CMAKE_MATCH_3}")
      if(NOT path AND loaded MATCHES "(/[^ \n]*/${pattern}) ")
        set(path "${CMAKE_MATCH_1}")  # the loader itself
      endif()
      set(path_of_${soname} "${path}")
    endif()
  endforeach()
endforeach()
list(REMOVE_DUPLICATES sonames)
list(SORT sonames)

# Debian's package that has a file; empty if nobody knows.
function(package_of file variable)
  set(${variable} "" PARENT_SCOPE)
  if(NOT file)
    return()
  endif()
  file(REAL_PATH "${file}" real)
  string(REGEX REPLACE "^/usr/" "/" short "${real}")  # as packages from before the merge have it
  foreach(candidate IN ITEMS "${real}" "${short}" "${file}")
    execute_process(COMMAND dpkg-query -S "${candidate}" OUTPUT_VARIABLE owner RESULT_VARIABLE failed
                    ERROR_QUIET)
    if(failed EQUAL 0 AND owner MATCHES "^([^,: ]+)(:[a-z0-9]+)?[,:]")
      set(${variable} "${CMAKE_MATCH_1}${CMAKE_MATCH_2}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

function(quote text variable)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REGEX REPLACE "[\n\t]" " " text "${text}")
  set(${variable} "\"${text}\"" PARENT_SCOPE)
endfunction()

# What Debian's copyright file says of most files, as SPDX calls it.
function(license_of package variable)
  set(${variable} NOASSERTION PARENT_SCOPE)
  string(REGEX REPLACE ":.*" "" directory "${package}")
  set(file "/usr/share/doc/${directory}/copyright")
  if(NOT EXISTS "${file}")
    return()
  endif()
  file(READ "${file}" text)
  if(NOT text MATCHES "\nFiles: *\\*[^\n]*\n([^\n]+\n)*License: *([^\n]+)")
    return()
  endif()
  set(debian "${CMAKE_MATCH_2}")
  set(known Apache-2.0 BSD-2-Clause BSD-3-Clause BSL-1.0 curl ISC MIT PostgreSQL Zlib)
  list(FIND known "${debian}" at)
  if(NOT at EQUAL -1)
    set(${variable} "${debian}" PARENT_SCOPE)
  elseif(debian MATCHES "^(Expat|expat|MIT/X11)$")
    set(${variable} MIT PARENT_SCOPE)
  elseif(debian MATCHES "^BSD-([23])-clause$")
    set(${variable} "BSD-${CMAKE_MATCH_1}-Clause" PARENT_SCOPE)
  elseif(debian STREQUAL "BSD")
    set(${variable} BSD-3-Clause PARENT_SCOPE)
  endif()
endfunction()

set(packages "")
set(relationships "")
set(seen "")

# Adds `package`, or what is known of `name` if no package has it, and how Baton uses it.
macro(add_package name package relation comment)
  set(id "${package}")
  if("${package}" STREQUAL "")
    set(id "${name}")
  endif()
  string(MAKE_C_IDENTIFIER "${id}" id)
  string(REPLACE "_" "-" id "${id}")
  list(APPEND comments_of_${id} "${comment}")
  if(NOT id IN_LIST seen)
    list(APPEND seen ${id})
    set(name_of_${id} "${name}")
    set(package_of_${id} "${package}")
    set(relation_of_${id} "${relation}")
  endif()
endmacro()

foreach(soname IN LISTS sonames)
  package_of("${path_of_${soname}}" package)
  add_package("${soname}" "${package}" DYNAMIC_LINK "${soname}")
endforeach()
foreach(header IN LISTS HEADERS)
  package_of("${header}" package)
  get_filename_component(name "${header}" NAME)
  add_package("${name}" "${package}" STATIC_LINK "${name}")
endforeach()

list(SORT seen)
foreach(id IN LISTS seen)
  set(name "${name_of_${id}}")
  set(version NOASSERTION)
  set(supplier NOASSERTION)
  set(license NOASSERTION)
  set(references "")
  set(package "${package_of_${id}}")
  if(package)
    execute_process(COMMAND dpkg-query -W -f "\${Package}|\${Version}|\${Architecture}|\${Maintainer}"
                            "${package}"
                    OUTPUT_VARIABLE fields COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCH "^([^|]*)\\|([^|]*)\\|([^|]*)\\|(.*)$" ignored "${fields}")
    set(name "${CMAKE_MATCH_1}")
    set(version "${CMAKE_MATCH_2}")
    set(architecture "${CMAKE_MATCH_3}")
    set(supplier "${CMAKE_MATCH_4}")
    string(REGEX REPLACE "<(.*)>" "(\\1)" supplier "Organization: ${supplier}")
    license_of("${package}" license)
    string(REPLACE "+" "%2B" escaped "pkg:deb/debian/${name}@${version}?arch=${architecture}")
    set(references ",\n      \"externalRefs\": [{\"referenceCategory\": \"PACKAGE-MANAGER\", \"referenceType\": \"purl\", \"referenceLocator\": \"${escaped}\"}]")
  endif()
  list(JOIN comments_of_${id} " " comment)
  if(relation_of_${id} STREQUAL "STATIC_LINK")
    string(PREPEND comment "compiled in, headers only: ")
  else()
    string(PREPEND comment "linked as ")
  endif()
  foreach(value IN ITEMS name version supplier comment)
    quote("${${value}}" ${value})
  endforeach()
  string(APPEND packages ",
    {
      \"SPDXID\": \"SPDXRef-${id}\",
      \"name\": ${name},
      \"versionInfo\": ${version},
      \"supplier\": ${supplier},
      \"downloadLocation\": \"NOASSERTION\",
      \"filesAnalyzed\": false,
      \"licenseConcluded\": \"NOASSERTION\",
      \"licenseDeclared\": \"${license}\",
      \"copyrightText\": \"NOASSERTION\",
      \"comment\": ${comment}${references}
    }")
  string(APPEND relationships ",
    {\"spdxElementId\": \"SPDXRef-baton\", \"relationshipType\": \"${relation_of_${id}}\", \"relatedSpdxElement\": \"SPDXRef-${id}\"}")
endforeach()

# SOURCE_DATE_EPOCH, if it is set, makes the document the same every time.
string(TIMESTAMP created "%Y-%m-%dT%H:%M:%SZ" UTC)
string(UUID unique NAMESPACE 6ba7b811-9dad-11d1-80b4-00c04fd430c8 NAME "${created}${packages}"
       TYPE SHA1)
file(WRITE "${OUTPUT}" "{
  \"spdxVersion\": \"SPDX-2.3\",
  \"dataLicense\": \"CC0-1.0\",
  \"SPDXID\": \"SPDXRef-DOCUMENT\",
  \"name\": \"baton-${VERSION}\",
  \"documentNamespace\": \"urn:uuid:${unique}\",
  \"creationInfo\": {\"created\": \"${created}\", \"creators\": [\"Tool: baton-sbom-${VERSION}\"]},
  \"documentDescribes\": [\"SPDXRef-baton\"],
  \"packages\": [
    {
      \"SPDXID\": \"SPDXRef-baton\",
      \"name\": \"baton\",
      \"versionInfo\": \"${VERSION}\",
      \"supplier\": \"NOASSERTION\",
      \"downloadLocation\": \"NOASSERTION\",
      \"filesAnalyzed\": false,
      \"licenseConcluded\": \"NOASSERTION\",
      \"licenseDeclared\": \"${LICENSE}\",
      \"copyrightText\": \"NOASSERTION\"
    }${packages}
  ],
  \"relationships\": [
    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \"relatedSpdxElement\": \"SPDXRef-baton\"}${relationships}
  ]
}
")
