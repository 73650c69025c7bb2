#!/bin/sh
# Gradescope's: a compiler, and the marker.
set -e
apt-get update
apt-get install -y --no-install-recommends gcc libc6-dev make
make -C /autograder/source/tapehead build/exercises
chmod -R go= /autograder/source # the answers are there
