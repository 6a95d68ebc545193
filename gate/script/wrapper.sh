#!/bin/sh
# The gate for images with a shell (gateMode Script): the container's command is
# this script, and the program's own command and arguments are its arguments. It
# waits for the pod's grant, as the program in gate/ does, and becomes the
# program. It needs a shell and sleep, and nothing else of the image.
#
# The names of its variables start with _ssn_: a variable that the program's
# environment has too would reach the program changed.

_ssn_dir=/var/run/signal

_ssn_say() { echo "StatefulSingleton: $1" >&2; }

if [ $# -eq 0 ]; then
  _ssn_say "usage: entrypoint-wrapper.sh COMMAND [ARGUMENT]..."
  exit 2
fi

# Whatever an image may name to stop its container by. It arrives while the
# shell waits for sleep, which ends at once, and nothing is left behind; or while
# it reads a file and has its errors thrown away, and then the end comes after.
_ssn_got= _ssn_nap= _ssn_reading=
_ssn_stop() {
  _ssn_got=$1 _ssn_code=$2
  [ -n "$_ssn_reading" ] || _ssn_end
}
_ssn_end() {
  [ -z "$_ssn_nap" ] || kill "$_ssn_nap" 2>/dev/null
  _ssn_say "got $_ssn_got before the start signal; the program was not started"
  exit "$_ssn_code"
}
trap '_ssn_stop SIGHUP 129' HUP
trap '_ssn_stop SIGINT 130' INT
trap '_ssn_stop SIGQUIT 131' QUIT
trap '_ssn_stop SIGUSR1 138' USR1
trap '_ssn_stop SIGUSR2 140' USR2
trap '_ssn_stop SIGTERM 143' TERM
# On a terminal this signal reports a new window size, and is ignored.
[ -t 0 ] || [ -t 1 ] || [ -t 2 ] || trap '_ssn_stop SIGWINCH 156' WINCH

# Puts a file's text into _ssn_text. It is true if that is all of it and not
# nothing: read fails where the file ends without a newline.
_ssn_read() {
  _ssn_text= _ssn_reading=yes
  { IFS= read -r _ssn_text <"$_ssn_dir/$1"; } 2>/dev/null
  set -- $?
  _ssn_reading=
  [ -z "$_ssn_got" ] || _ssn_end
  [ "$1" -ne 0 ] && [ -n "$_ssn_text" ]
}

# A grant is "<pod UID> <epoch>" and nothing else, for this pod.
_ssn_granted() {
  _ssn_read start-signal || return 1
  _ssn_grant=$_ssn_text
  _ssn_read pod-uid && [ "${_ssn_grant%% *}" = "$_ssn_text" ] || return 1
  _ssn_epoch=${_ssn_grant#"$_ssn_text "}
  case $_ssn_epoch in
  '' | 0* | *[!0123456789]*) return 1 ;;
  esac
  [ ${#_ssn_epoch} -le 18 ]
}

# Tenths of a second since the machine was started; 0 if unknown.
_ssn_now() {
  _ssn_time=
  [ ! -r /proc/uptime ] || read -r _ssn_time _ssn_rest </proc/uptime
  case $_ssn_time in
  ?*.[0123456789]*)
    _ssn_rest=${_ssn_time#*.}
    _ssn_time=$((${_ssn_time%.*} * 10 + ${_ssn_rest%"${_ssn_rest#?}"}))
    ;;
  *) _ssn_time=0 ;;
  esac
}

_ssn_waited() {
  _ssn_now
  _ssn_time=$((_ssn_time - _ssn_began))
}

# A killed sleep counts as complete. Codes 126 and 127: the image has no sleep.
_ssn_sleep() {
  sleep "$_ssn_every" 2>/dev/null &
  _ssn_nap=$!
  wait "$_ssn_nap"
  set -- $?
  _ssn_nap=
  case $1 in
  126 | 127)
    _ssn_say "cannot wait: there is no sleep in this image"
    exit "$1"
    ;;
  esac
  # Not every sleep knows fractions.
  [ "$1" -eq 0 ] || [ "$1" -gt 128 ] || _ssn_every=1
}

_ssn_now
_ssn_began=$_ssn_time
_ssn_remind=600
_ssn_every=0.05
if ! _ssn_granted; then
  _ssn_read pod-uid
  _ssn_pod=${_ssn_text:-"unknown: cannot read file $_ssn_dir/pod-uid"}
  _ssn_say "waiting for the start signal; pod $_ssn_pod"
fi
until _ssn_granted; do
  _ssn_sleep
  _ssn_waited
  if [ "$_ssn_time" -ge "$_ssn_remind" ]; then
    _ssn_say "still waiting for the start signal after $((_ssn_time / 10)).$((_ssn_time % 10))s; pod $_ssn_pod"
    _ssn_remind=$((_ssn_time + 600))
  fi
done
_ssn_waited
_ssn_say "start signal received (epoch $_ssn_epoch) after $((_ssn_time / 10)).$((_ssn_time % 10))s"
exec "$@"
