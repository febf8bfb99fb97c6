#!/bin/sh
# The main job on real data: three days of flights, then a fourth. Runs in demo/, which it replaces.
set -eu
cd "$(dirname "$0")/.."
etl=$PWD/bin/etl
rm -rf demo
mkdir -p demo/landing/flights
cp examples/pipelines/daily_flights.sql demo/
for day in 01 02 03; do cp "examples/pipelines/landing/flights/2001-01-$day.csv" demo/landing/flights/; done
cd demo

say() { printf '\n$ %s\n' "$*"; }
say etl run daily_flights.sql
"$etl" run daily_flights.sql
say cp 2001-01-04.csv landing/flights/
cp ../examples/pipelines/landing/flights/2001-01-04.csv landing/flights/
say etl run daily_flights.sql
"$etl" run daily_flights.sql
say etl run daily_flights.sql
"$etl" run daily_flights.sql
say etl query daily_flights.sql "'FROM daily_flights ORDER BY day, origin'"
"$etl" query daily_flights.sql 'FROM daily_flights ORDER BY day, origin'
say etl status daily_flights.sql
"$etl" status daily_flights.sql
say etl reconcile daily_flights.sql
"$etl" reconcile daily_flights.sql
