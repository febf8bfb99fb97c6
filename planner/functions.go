package planner

import "strings"

// The functions a pipeline may call. Each gives the same result for the same arguments, whenever and
// wherever it runs: no clock, no randomness, no session, no files, no catalogue. DuckDB's own
// "consistent" flag is not enough (age(timestamp) reads the clock), so the list is explicit; a test
// holds it against duckdb_functions().
var scalarFunctions = words(`
+ - * / // % ^ ** & | << >> ~ xor !__postfix @ || ~~ !~~ ~~* !~~* ~~~ ~ like_escape not_like_escape ilike_escape not_ilike_escape

abs acos acosh asin asinh atan atan2 atanh bit_count cbrt ceil ceiling cos cosh cot degrees divide even exp
factorial fdiv floor fmod gamma gcd greatest greatest_common_divisor isfinite isinf isnan lcm
least least_common_multiple lgamma ln log log10 log2 mod multiply nextafter pi pow power radians round round_even
sign signbit sin sinh sqrt subtract add tan tanh trunc

array_extract array_slice ascii bar base64 bin bit_length char_length character_length chr concat concat_ws contains
damerau_levenshtein decode editdist3 encode ends_with format format_bytes formatReadableDecimalSize from_base64 from_binary from_hex
greatest hamming hash hex instr jaccard jaro_similarity jaro_winkler_similarity lcase left left_grapheme len length length_grapheme
levenshtein lower lpad ltrim md5 md5_number mismatches nfc_normalize octet_length ord parse_dirname parse_dirpath
parse_filename parse_path position prefix printf regexp_escape regexp_extract regexp_full_match regexp_matches
regexp_replace repeat replace reverse right right_grapheme rpad rtrim sha1 sha256 split_part starts_with strip_accents strlen
strpos substr substring substring_grapheme suffix to_base64 to_binary to_hex translate trim ucase unbin unhex unicode upper url_decode url_encode

century date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear
decade epoch epoch_ms epoch_ns epoch_us era hour isodow isoyear julian last_day make_date make_time make_timestamp
make_timestamp_ms make_timestamp_ns make_timestamptz microsecond millennium millisecond minute month monthname nanosecond
quarter second strftime strptime time_bucket timezone timezone_hour timezone_minute to_centuries to_days to_decades to_hours
to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years
try_strptime week weekday weekofyear year yearweek

constant_or_null error struct_extract list_value list_contains list_has array_contains list_extract list_element
`)

// aggregateFunctions lists what exists as an aggregate in DuckDB and has a rule here; the rules are in
// accumulators.go.
var aggregateFunctions = words(`
avg bool_and bool_or count count_if count_star favg fsum max min stddev_pop stddev_samp sum var_pop var_samp
`)

// Aggregates that have no incremental rule yet, with what to write instead.
var aggregateHints = map[string]string{
	"any_value":             "say which value: min(x) or max(x)",
	"last":                  "say which value: max(x)",
	"list":                  "keep the rows grouped by the value instead: GROUP BY key, value",
	"array_agg":             "keep the rows grouped by the value instead: GROUP BY key, value",
	"string_agg":            "keep the rows grouped by the value instead: GROUP BY key, value",
	"approx_count_distinct": "count exactly: SELECT k, count(*) FROM (SELECT k, v FROM t GROUP BY k, v) GROUP BY k",
}

// Functions refused for what they read.
var impure = map[string]string{
	"now": clock, "current_timestamp": clock, "transaction_timestamp": clock, "get_current_timestamp": clock,
	"current_date": clock, "today": clock, "current_time": clock, "get_current_time": clock, "age": clock,
	"current_localtime": clock, "current_localtimestamp": clock,
	"random": chance, "uuid": chance, "gen_random_uuid": chance, "uuidv4": chance, "uuidv7": chance, "setseed": chance,
	"nextval": session, "currval": session, "current_setting": session, "getenv": session, "current_user": session,
	"current_schema": session, "current_database": session, "version": session, "txid_current": session,
}

const (
	clock   = "reads the clock, so the same rows would give another result at the next run"
	chance  = "is random, so the same rows would give another result at the next run"
	session = "depends on the session, so the same rows could give another result elsewhere"
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

func allowedFunction(name string) bool { return scalarFunctions[name] }

func refuseFunction(pos int, name string) *refusal {
	if why, ok := impure[name]; ok {
		hint := "use a column of the input, or a constant of SET VARIABLE"
		if why == clock {
			hint = "use a time column of the input; a pinned date can come from SET VARIABLE"
		}
		return refuse(pos, hint, "%s() %s", name, why)
	}
	return refuse(pos, "", "function %s is not among those known to give the same result at every run", name)
}
