#!/bin/sh
rm -f /.running
