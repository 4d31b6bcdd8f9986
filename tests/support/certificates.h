#pragma once

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_dir.h"

namespace baton::test {

// A certificate authority of this test's own, in NAME.pem and NAME.key, and what it signs beside
// it.
class Certificates {
 public:
  Certificates() { make_authority("ca"); }

  void make_authority(const std::string& name) const {
    openssl({"req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", name + ".key", "-out",
             name + ".pem", "-days", "2", "-subj", "/CN=test " + name});
  }
  void sign(const std::string& name, const std::string& extension) const {
    sign(name, extension, {"-days", "2"});
  }
  // Valid until yesterday.
  void sign_expired(const std::string& name, const std::string& extension) const {
    sign(name, extension, {"-days", "-1"});
  }
  [[nodiscard]] std::string file(const std::string& name) const { return (dir_ / name).string(); }
  [[nodiscard]] const std::filesystem::path& dir() const { return dir_.path(); }

 private:
  void sign(const std::string& name, const std::string& extension,
            const std::vector<std::string>& validity) const {
    openssl({"req", "-newkey", "rsa:2048", "-nodes", "-keyout", name + ".key", "-out",
             name + ".csr", "-subj", "/CN=" + name});
    std::ofstream(dir_ / (name + ".ext")) << extension << '\n';
    std::vector<std::string> words{
        "x509",        "-req",     "-in",        name + ".csr",     "-CA",
        "ca.pem",      "-CAkey",   "ca.key",     "-CAcreateserial", "-out",
        name + ".pem", "-extfile", name + ".ext"};
    words.insert(words.end(), validity.begin(), validity.end());
    openssl(std::move(words));
  }
  void openssl(std::vector<std::string> words) const {
    words.insert(words.begin(), "openssl");
    const Finished done = run({.argv = std::move(words), .cwd = dir_.path()});
    if (!done.status.success()) throw std::runtime_error("openssl: " + done.err);
  }

  TempDir dir_{"tls"};
};

}  // namespace baton::test
