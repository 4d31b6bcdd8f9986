# Makes the target RabbitMQ::rabbitmq: the names that Debian's own package file exports changed
# between its releases.

include(FindPackageHandleStandardArgs)
find_path(RABBITMQ_INCLUDE_DIR amqp.h)
find_library(RABBITMQ_LIBRARY rabbitmq)
mark_as_advanced(RABBITMQ_INCLUDE_DIR RABBITMQ_LIBRARY)
find_package_handle_standard_args(RabbitMQ REQUIRED_VARS RABBITMQ_LIBRARY RABBITMQ_INCLUDE_DIR)

if(RabbitMQ_FOUND AND NOT TARGET RabbitMQ::rabbitmq)
  add_library(RabbitMQ::rabbitmq UNKNOWN IMPORTED)
  set_target_properties(RabbitMQ::rabbitmq PROPERTIES
    IMPORTED_LOCATION "${RABBITMQ_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${RABBITMQ_INCLUDE_DIR}")
endif()
