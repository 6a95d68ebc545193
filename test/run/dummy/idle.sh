#!/bin/sh
# Process 1 does nothing: members are started by commands. It ends when it is
# asked to, and takes the exits of what commands leave behind.
trap 'exit 0' TERM INT
while :; do
  sleep 3600 &
  wait $!
done
