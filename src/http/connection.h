#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "http/connections.h"

namespace baton::http {

using Socket = boost::asio::ip::tcp::socket;

// `socket` runs on a strand. Serves it until it ends, or refuses it.
void accept_connection(Socket socket, Connections& all);

}  // namespace baton::http
