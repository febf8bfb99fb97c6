package planner

import "strings"

// The functions a pipeline may call. Each gives the same result for the same arguments, whenever and
// wherever it runs: no clock, no randomness, no session, no files, no catalogue. DuckDB's own
// "consistent" flag is not enough (age(timestamp) reads the clock), so the list is explicit; a test
// holds it against duckdb_functions().
//
// Left out on purpose: hash (another value in another DuckDB), list_distinct and list_intersect (an
// order nobody promises), icu_collate_* and icu_sort_key (follow the ICU version), alias, stats and
// vector_type (tell about the plan, not the value). Macros such as nullif and split_part are expanded
// before we see them. `error` is volatile for DuckDB, so that it is not folded; it is harmless.
var scalarFunctions = words(`
+ - * / // % ^ ** & | << >> ~ xor !__postfix @ || ~~ !~~ ~~* !~~* ~~~ ^@ && @> <@ ->>
like_escape not_like_escape ilike_escape not_ilike_escape

abs acos acosh add asin asinh atan atan2 atanh bit_count cbrt ceil ceiling cos cosh cot degrees divide even exp
factorial floor gamma gcd greatest greatest_common_divisor isfinite isinf isnan lcm least least_common_multiple lgamma
ln log log10 log2 mod multiply nextafter pi pow power radians round sign signbit sin sinh sqrt subtract tan tanh trunc

array_extract array_slice ascii bar base64 bin bit_length char_length character_length chr concat concat_ws contains
damerau_levenshtein decode editdist3 encode ends_with format format_bytes formatReadableDecimalSize
formatReadableSize from_base64 from_binary from_hex hamming hex instr jaccard jaro_similarity jaro_winkler_similarity
lcase left left_grapheme len length length_grapheme levenshtein lower lpad ltrim md5 md5_number mismatches nfc_normalize
octet_length ord parse_dirname parse_dirpath parse_filename parse_formatted_bytes parse_path position prefix printf
regexp_escape regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array
repeat replace reverse right right_grapheme rpad rtrim sha1 sha256 split starts_with str_split str_split_regex
string_split string_split_regex string_to_array strip_accents strlen strpos substr substring substring_grapheme suffix
to_base to_base64 to_binary to_hex translate trim ucase unbin unhex unicode upper url_decode url_encode

age century date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek
dayofyear decade epoch epoch_ms epoch_ns epoch_us era hour isodow isoyear julian last_day make_date make_time
make_timestamp make_timestamp_ms make_timestamp_ns make_timestamptz microsecond millennium millisecond minute month
monthname nanosecond normalized_interval quarter second strftime strptime time_bucket timezone timezone_hour
timezone_minute to_centuries to_days to_decades to_hours to_microseconds to_millennia to_milliseconds to_minutes
to_months to_quarters to_seconds to_timestamp to_weeks to_years try_strptime week weekday weekofyear year yearweek

bit_position bitstring enum_code error get_bit set_bit uuid_extract_timestamp uuid_extract_version

array_cat array_concat array_contains array_has array_has_all array_has_any array_indexof array_length array_position
array_resize array_reverse_sort array_select array_sort array_unique array_where flatten list_cat list_concat
list_contains list_element list_extract list_has list_has_all list_has_any list_indexof list_pack list_position
list_resize list_reverse_sort list_select list_slice list_sort list_unique list_value list_where
array_aggr array_aggregate list_aggr list_aggregate
cardinality element_at map map_contains map_extract map_extract_value map_keys map_values
struct_extract struct_extract_at struct_pack

array_to_json from_json from_json_strict json_array json_array_length json_contains json_exists json_extract
json_extract_path json_extract_path_text json_extract_string json_keys json_merge_patch json_object json_pretty
json_quote json_structure json_transform json_transform_strict json_type json_valid json_value row_to_json to_json
`)

// listAggregates run an aggregate over the elements of a list, and aggregatesInLists says which ones
// may: their result follows from the list and takes no further argument.
var (
	listAggregates    = words("array_aggr array_aggregate list_aggr list_aggregate")
	aggregatesInLists = words(`avg bool_and bool_or count max min product stddev_pop stddev_samp sum var_pop var_samp`)
)

// aggregateFunctions lists what exists as an aggregate in DuckDB and has a rule here; the rules are in
// accumulators.go.
var aggregateFunctions = words(`
arg_max arg_max_null arg_min arg_min_null
avg bit_and bit_or bit_xor bool_and bool_or count count_if count_star max min stddev_pop stddev_samp sum var_pop var_samp
`)

// orderedAggregates have a rule with an ORDER BY inside.
var orderedAggregates = words("any_value first last")

// aggregateHints lists all other aggregates, with what to write instead.
var aggregateHints = hintPerName(map[string]string{
	"say which value: first(x ORDER BY ts), min(x) or max(x)": "any_value first",
	"say which value: last(x ORDER BY ts) or max(x)":          "last",
	"keep the rows grouped by the value instead: GROUP BY key, value": "list array_agg string_agg group_concat listagg " +
		"histogram histogram_exact bitstring_agg",
	"count exactly: SELECT k, count(v) FROM (SELECT k, v FROM t GROUP BY k, v) GROUP BY k": "approx_count_distinct",
	"keep the rows grouped by the value and its count: GROUP BY key, value": "approx_quantile approx_top_k entropy mad median " +
		"mode quantile quantile_cont quantile_disc reservoir_quantile",
	"write first(x ORDER BY y DESC NULLS LAST)": "arg_max_nulls_last",
	"write first(x ORDER BY y NULLS LAST)":      "arg_min_nulls_last",
	"compute it from sums: sum(x * y), sum(x), sum(y), count(x)": "corr covar_pop covar_samp regr_avgx regr_avgy regr_count " +
		"regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy sem",
	"compute it from sums of powers of exact numbers": "kurtosis kurtosis_pop skewness product",
	"it needs an OVER clause, and window functions have no rule yet": "cume_dist dense_rank fill lag lead nth_value " +
		"ntile percent_rank rank rank_dense row_number",
	// Of an infinity they give NaN or not, with the order of the rows.
	"use sum: it is kept as exactly":      "fsum kahan_sum sumkahan sum_no_overflow",
	"use avg: its sum is kept as exactly": "favg",
})

func hintPerName(namesPerHint map[string]string) map[string]string {
	out := map[string]string{}
	for hint, names := range namesPerHint {
		for name := range words(names) {
			out[name] = hint
		}
	}
	return out
}

// aggregate: the name, as written, is one of an aggregate.
func aggregate(name string) bool {
	name = canonicalAggregate(name)
	_, without := aggregateHints[name]
	return without || aggregateFunctions[name]
}

// Functions refused for what they read.
var impure = map[string]string{
	"now": clock, "current_timestamp": clock, "transaction_timestamp": clock, "get_current_timestamp": clock,
	"current_date": clock, "today": clock, "current_time": clock, "get_current_time": clock, "age": clock, "ago": clock,
	"current_localtime": clock, "current_localtimestamp": clock, "localtime": clock, "localtimestamp": clock,
	"random": chance, "uuid": chance, "gen_random_uuid": chance, "uuidv4": chance, "uuidv7": chance, "setseed": chance,
	"nextval": session, "currval": session, "current_setting": session, "getenv": session, "current_user": session,
	"current_role": session, "session_user": session, "user": session, "current_schema": session, "current_schemas": session,
	"current_database": session, "current_catalog": session, "current_query": session, "current_query_id": session,
	"current_connection_id": session, "current_transaction_id": session, "version": session, "txid_current": session,
	"in_search_path": session, "hash": release, "stats": session,
}

const (
	clock   = "reads the clock, so the same rows would give another result at the next run"
	chance  = "is random, so the same rows would give another result at the next run"
	session = "depends on the session, so the same rows could give another result elsewhere"
	release = "gives another value in another version of DuckDB"
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// allowedFunction: age(a, b) is the difference of two times, age(a) that to the clock.
func allowedFunction(name string, args int) bool {
	return scalarFunctions[name] && (name != "age" || args == 2)
}

func refuseFunction(pos int, name string) *refusal {
	why, ok := impure[name]
	if name == "timetz_byte_comparable" { // what DuckDB groups by in its place
		return refuse(pos, "group by"+timetzHint, timetz, "a group")
	}
	if !ok {
		return refuse(pos, "", "function %s is not among those known to give the same result at every run", name)
	}
	hint := "use a column of the input, or a constant of SET VARIABLE"
	switch why {
	case clock:
		hint = "use a time column of the input; a pinned date can come from SET VARIABLE"
	case release:
		hint = "use md5 or sha256"
	}
	return refuse(pos, hint, "%s %s", name, why)
}
