package sql

import "strings"

// reserved are the words that DuckDB 1.5 does not take as a table or column name without quotes
// (categories reserved and type_function of duckdb_keywords()). Taking one here would only move
// the error into the SELECT that uses the name.
var reserved = wordSet(`
	ALL ANALYSE ANALYZE AND ANY ARRAY AS ASC ASYMMETRIC BOTH CASE CAST CHECK COLLATE COLUMN
	CONSTRAINT CREATE DEFAULT DEFERRABLE DESC DESCRIBE DISTINCT DO ELSE END EXCEPT FALSE FETCH FOR
	FOREIGN FROM GROUP HAVING IN INITIALLY INTERSECT INTO LAMBDA LATERAL LEADING LIMIT NOT NULL
	OFFSET ON ONLY OR ORDER PIVOT PIVOT_LONGER PIVOT_WIDER PLACING PRIMARY QUALIFY REFERENCES
	RETURNING SELECT SHOW SOME SUMMARIZE SYMMETRIC TABLE THEN TO TRAILING TRUE UNION UNIQUE UNPIVOT
	USING VARIADIC WHEN WHERE WINDOW WITH

	ANTI ASOF AT AUTHORIZATION BINARY BY COLLATION COLUMNS CONCURRENTLY CROSS FREEZE FULL GENERATED
	GLOB ILIKE INNER IS ISNULL JOIN LEFT LIKE MAP NATURAL NOTNULL OUTER OVERLAPS POSITIONAL RIGHT
	SEMI SIMILAR STRUCT TABLESAMPLE TRY_CAST UNPACK VERBOSE`)

// clauses are reserved words that, where a name is expected, more likely follow a forgotten name
// than are meant as one.
var clauses = wordSet("AS CHECK FOR FROM NOT ON PRIMARY WITH")

// typeWords are the reserved words that name a type.
var typeWords = wordSet("MAP STRUCT UNION")

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}
