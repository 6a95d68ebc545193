#!/bin/sh
# Starts the first member.
touch /.running
