#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "baton/broker.h"
#include "support/certificates.h"
#include "support/rabbit_server.h"

namespace baton::test {

// A certificate of localhost and an authority that signed neither.
class RabbitFiles : public Certificates {
 public:
  RabbitFiles() {
    sign("server", "subjectAltName=IP:127.0.0.1,DNS:localhost");
    make_authority("stranger");
  }
};
inline const RabbitFiles& files() {
  static const RabbitFiles made;
  return made;
}

// One for all cases of the program.
inline RabbitServer& server() {
  static RabbitServer started({.settings = {{"ssl_options.cacertfile", files().file("ca.pem")},
                                            {"ssl_options.certfile", files().file("server.pem")},
                                            {"ssl_options.keyfile", files().file("server.key")},
                                            {"ssl_options.verify", "verify_none"}},
                               .tls = true});
  return started;
}

inline Deadline in(Millis time) { return BootClock::now() + time; }
inline Deadline soon() { return in(Millis(30'000)); }

}  // namespace baton::test
