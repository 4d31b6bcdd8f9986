"""Baton as a Conan 2 package: the library, without its programs.

    conan create packaging/conan -o "&:redis=True"

packaging/README.md says what of this was checked.
"""

import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

# What a store needs, and what else is built only if it is asked for.
STORES = {
    "sqlite": ["sqlite3/[>=3.35 <4]"],
    "postgres": ["libpq/[>=15]"],
    "redis": ["hiredis/[>=1.0 <2]", "openssl/[>=3 <4]"],
    "etcd": ["libcurl/[>=7.88 <9]"],
    "kubernetes": ["libcurl/[>=7.88 <9]"],
}
EXTRAS = {
    "rabbitmq": ["rabbitmq-c/[>=0.11 <1]", "openssl/[>=3 <4]"],
    "metrics": ["prometheus-cpp/[>=1.1 <2]", "boost/[>=1.74 <2]"],
}
# Of a package here, the name that CMake's files of Baton look it up by.
CMAKE_PACKAGES = {"rabbitmq": ["RabbitMQ"], "metrics": ["prometheus-cpp", "Boost"]}


class BatonConan(ConanFile):
    name = "baton"
    description = "Of all the replicas of a service, exactly one does each piece of work"
    license = "Apache-2.0"
    topics = ("lock", "lease", "leader-election", "fencing", "outbox", "scheduler")
    package_type = "library"
    settings = "os", "compiler", "build_type", "arch"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        **{name: [True, False] for name in (*STORES, *EXTRAS)},
    }
    default_options = {
        "shared": False,
        "fPIC": True,
        "sqlite": True,
        "postgres": True,
        "redis": False,
        "etcd": False,
        "kubernetes": False,
        "rabbitmq": False,
        "metrics": False,
    }
    implements = ["auto_shared_fpic"]

    def set_version(self):
        top = load(self, os.path.join(self.recipe_folder, "..", "..", "CMakeLists.txt"))
        self.version = top.split("project(baton VERSION ")[1].split()[0]

    def export_sources(self):
        top = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "SECURITY.md", "cmake/*", "include/*", "src/*"):
            copy(self, pattern, src=top, dst=self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("Baton runs on Linux only")

    def _asked(self, table):
        return [name for name in table if self.options.get_safe(name)]

    def requirements(self):
        self.requires("nlohmann_json/[>=3.11 <4]")
        self.requires("yaml-cpp/[>=0.7 <1]")
        wanted = {}
        for table in (STORES, EXTRAS):
            for name in self._asked(table):
                for reference in table[name]:
                    # Users pass their handles of these to Baton, so they see the headers too.
                    shown = reference.startswith(("sqlite3/", "libpq/", "hiredis/"))
                    wanted[reference] = shown
        for reference, shown in wanted.items():
            self.requires(reference, transitive_headers=shown)

    def generate(self):
        toolchain = CMakeToolchain(self)
        stores = ["memory", *self._asked(STORES)]
        if "postgres" in stores:
            stores.append("postgres_advisory")
        toolchain.cache_variables["BATON_STORES"] = ";".join(stores)
        toolchain.cache_variables["BATON_BUILD_PROGRAMS"] = False
        toolchain.cache_variables["BATON_BUILD_TESTS"] = False
        toolchain.cache_variables["BATON_TOGETHER"] = True
        toolchain.cache_variables["BATON_WERROR"] = False
        for name, packages in CMAKE_PACKAGES.items():
            for package in packages:
                toolchain.cache_variables[f"CMAKE_DISABLE_FIND_PACKAGE_{package}"] = (
                    not self.options.get_safe(name)
                )
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # The files that CMake has installed know the components, and what each needs.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake", "baton"))
