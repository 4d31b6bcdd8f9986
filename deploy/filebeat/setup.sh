#!/bin/bash
# Makes in Elasticsearch what filebeat.yml needs, once and again: how long logs are kept, the index
# template, and the user filebeat_writer, who may only write logs. Sets the password of Kibana's
# own user.
#
#   ELASTICSEARCH_HOSTS=http://elasticsearch:9200 ELASTIC_PASSWORD=… KIBANA_PASSWORD=… \
#     FILEBEAT_PASSWORD=… bash setup.sh
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
url=${ELASTICSEARCH_HOSTS:-http://elasticsearch:9200}
for password in "$ELASTIC_PASSWORD" "$KIBANA_PASSWORD" "$FILEBEAT_PASSWORD"; do
  [[ $password =~ ^[A-Za-z0-9]+$ ]] || { echo "passwords are letters and digits" >&2; exit 1; }
done

# send METHOD PATH, the body on stdin. Passwords are in no command line.
send() {
  curl --fail-with-body -sS --retry 30 --retry-connrefused --retry-delay 2 -o /dev/null \
    -K <(printf 'user = "elastic:%s"\n' "$ELASTIC_PASSWORD") \
    -H 'Content-Type: application/json' -X "$1" --data-binary @- "$url$2"
}

send PUT /_ilm/policy/eda-logs <<'END'
{"policy": {"phases": {"hot": {"actions": {}}, "delete": {"min_age": "30d", "actions": {"delete": {}}}}}}
END
send PUT /_index_template/eda-logs <"$here/eda-logs.template.json"
send PUT /_security/role/eda_logs_writer <<'END'
{"cluster": ["monitor"], "indices": [{"names": ["eda-logs-*"], "privileges": ["create_index", "index"]}]}
END
send PUT /_security/user/filebeat_writer <<END
{"password": "$FILEBEAT_PASSWORD", "roles": ["eda_logs_writer"]}
END
send POST /_security/user/kibana_system/_password <<END
{"password": "$KIBANA_PASSWORD"}
END
