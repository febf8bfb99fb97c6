package files

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lockstep/connectors"
	"lockstep/engine/duck"
)

// Fault is something wrong with what the pipeline file says of a source.
type Fault struct {
	Option string // the WITH option it is about; "" = the source as a whole
	Reason string
	Hint   string
}

func (f Fault) Error() string {
	msg := f.Reason
	if f.Option != "" {
		msg = "option " + f.Option + ": " + msg
	}
	if f.Hint != "" {
		msg += "\n  " + f.Hint
	}
	return msg
}

const (
	formatParquet = "parquet"
	formatCSV     = "csv"
	formatJSON    = "json" // one object per line
)

// settings is a source's WITH list, checked, with a value for everything that decides how bytes
// become rows: nothing is left to detection, which would look at other bytes tomorrow.
type settings struct {
	format string
	text   map[string]string // options of the format by name; those not set and without default are absent

	maxRejects allowance
	repeats    string // new, renamed, or "": ask
	replaced   bool   // a file that was read may be replaced
}

// option is a reader option that may be set. Names and meanings are DuckDB's.
type option struct {
	name  string
	kind  func(text string) (problem string)
	bare  bool   // written into SQL without quotes
	value string // the default; "" with unset
	unset bool   // no default: passed only when given
	ours  bool   // not for DuckDB's reader: all columns are text to it
}

var csvOptions = []option{
	{name: "delim", kind: bytesUpTo(4), value: ","},
	{name: "quote", kind: bytesUpTo(1), value: `"`},
	{name: "escape", kind: bytesUpTo(1), value: `"`},
	{name: "comment", kind: bytesUpTo(1)},
	{name: "header", kind: boolean, bare: true, value: "true"},
	{name: "skip", kind: atLeast(0), bare: true, value: "0"},
	{name: "nullstr", kind: anyText},
	{name: "allow_quoted_nulls", kind: boolean, bare: true, value: "true"},
	{name: "dateformat", kind: anyText, unset: true, ours: true},
	{name: "timestampformat", kind: anyText, unset: true, ours: true},
	{name: "decimal_separator", kind: oneOf(".", ","), value: ".", ours: true},
	{name: "thousands", kind: bytesUpTo(1), unset: true, ours: true},
	{name: "encoding", kind: oneOf("utf-8", "latin-1"), value: "utf-8"},
	{name: "max_line_size", kind: atLeast(1), bare: true, value: "2000000"},
	{name: "null_padding", kind: boolean, bare: true, value: "false"},
	{name: "strict_mode", kind: boolean, bare: true, value: "true"},
}

var jsonOptions = []option{
	{name: "dateformat", kind: anyText, unset: true, ours: true},
	{name: "timestampformat", kind: anyText, unset: true, ours: true},
	{name: "maximum_object_size", kind: atLeast(1), bare: true, value: "16777216"},
}

var parquetOptions = []option{
	{name: "binary_as_string", kind: boolean, bare: true, value: "false"},
}

// optionsOf are those of a format; ownOptions are everybody's.
var (
	optionsOf  = map[string][]option{formatCSV: csvOptions, formatJSON: jsonOptions, formatParquet: parquetOptions}
	ownOptions = []string{"format", "files", "max_rejects", "repeats"}
)

const declared = "the columns are those that the source declares"

// refused are options of DuckDB's readers that would let input decide what counts as a row, or
// that have another place in a pipeline file.
var refused = map[string]string{
	"ignore_errors":               "a bad row must stop the run or be kept as a reject; it never just disappears (see max_rejects)",
	"store_rejects":               "bad rows are kept as max_rejects says",
	"rejects_table":               "bad rows are kept as max_rejects says",
	"rejects_scan":                "bad rows are kept as max_rejects says",
	"rejects_limit":               "bad rows are kept as max_rejects says",
	"union_by_name":               "columns are matched by name already, and a declared column must be in every file",
	"auto_detect":                 "detection may decide differently on the next file; etl infer writes down what it finds",
	"sample_size":                 "nothing is detected when a file is read",
	"files_to_sniff":              "nothing is detected when a file is read",
	"auto_type_candidates":        "nothing is detected when a file is read",
	"columns":                     declared,
	"column_names":                declared,
	"column_types":                declared,
	"names":                       declared,
	"types":                       declared,
	"dtypes":                      declared,
	"schema":                      declared,
	"all_varchar":                 "declare the columns as VARCHAR",
	"normalize_names":             "declare the columns under the names the files have",
	"force_not_null":              "write coalesce(column, '') in the SELECT",
	"filename":                    "declare a column with METADATA FROM 'filename'",
	"file_row_number":             "declare a column with METADATA FROM 'file_row_number'",
	"hive_partitioning":           "columns from folder names are not supported by this version",
	"hive_types":                  "columns from folder names are not supported by this version",
	"hive_types_autocast":         "columns from folder names are not supported by this version",
	"compression":                 "it is told by the file's suffix, .gz or .zst",
	"new_line":                    "each file's line ends are found when it is read",
	"parallel":                    "it changes the speed only; the engine decides",
	"buffer_size":                 "it changes the speed only; the engine decides",
	"encryption_config":           "encrypted files are not supported by this version",
	"records":                     "each line must be an object",
	"convert_strings_to_integers": "text is decoded as the columns are declared",
	"maximum_depth":               "nothing is detected when a file is read",
}

// Validate checks what needs no input: the path, the format and the options. It reports all faults.
func Validate(spec connectors.SourceSpec) []Fault {
	_, faults := newSettings(spec)
	return faults
}

func newSettings(spec connectors.SourceSpec) (settings, []Fault) {
	s := settings{text: map[string]string{}, maxRejects: allowance{text: "0"}}
	faults := pathFaults(spec.From)
	var formatFault *Fault
	if s.format, formatFault = formatOf(spec); formatFault != nil {
		return s, append(faults, *formatFault)
	}
	options := optionsOf[s.format]
	if s.format != formatParquet {
		if len(spec.Columns) == 0 {
			faults = append(faults, Fault{Reason: "a " + strings.ToUpper(s.format) + " source must declare its columns", Hint: "etl infer '" + spec.From + "' prints the statement"})
		}
		for _, c := range spec.Columns {
			if f := undecodable(c, s.format, false); f != nil {
				faults = append(faults, *f)
			}
		}
	}
	for _, c := range spec.Columns {
		if c.Metadata != "" && !slices.Contains(metadataNames, c.Metadata) {
			faults = append(faults, Fault{Reason: fmt.Sprintf("column %s: files have no metadata %q", c.Name, c.Metadata), Hint: "there are " + strings.Join(metadataNames, " and ")})
		}
	}
	for _, o := range options {
		if !o.unset {
			s.text[o.name] = o.value
		}
	}
	if strings.HasSuffix(strings.ToLower(nameOf(spec.From)), ".tsv") {
		s.text["delim"] = "\t"
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Options)) {
		if f := s.set(strings.ToLower(name), spec.Options[name], options); f != nil {
			faults = append(faults, *f)
		}
	}
	return s, append(faults, s.conflicts(spec.Columns)...)
}

func (s *settings) set(name string, value connectors.Option, options []option) *Fault {
	switch name {
	case "format":
		return nil // read by formatOf
	case "files":
		switch strings.ToLower(value.Text) {
		case "append":
		case "replace":
			s.replaced = true
		default:
			return &Fault{name, "takes 'append', where a file that was read never changes, or 'replace'", ""}
		}
		return nil
	case "repeats":
		if s.repeats = strings.ToLower(value.Text); s.repeats != "new" && s.repeats != "renamed" {
			return &Fault{name, "takes 'new' or 'renamed': what a file is that has the bytes of one that was read and is gone", ""}
		}
		return nil
	case "max_rejects":
		a, problem := parseAllowance(value.Text)
		if problem != "" {
			return &Fault{name, problem, ""}
		}
		s.maxRejects = a
		return nil
	}
	i := slices.IndexFunc(options, func(o option) bool { return o.name == name })
	if i < 0 {
		return unknownOption(name, s.format, options)
	}
	text := value.Text
	if name == "delim" && text == `\t` {
		text = "\t"
	}
	if options[i].bare || name == "encoding" {
		text = strings.ToLower(text)
	}
	if problem := options[i].kind(text); problem != "" {
		return &Fault{name, problem, ""}
	}
	s.text[name] = text
	return nil
}

func unknownOption(name, format string, options []option) *Fault {
	if reason, ok := refused[name]; ok {
		return &Fault{name, "is not allowed: " + reason, ""}
	}
	if name == "sep" || name == "delimiter" {
		return &Fault{name, "is not an option", "write delim"}
	}
	names := slices.Clone(ownOptions)
	for _, o := range options {
		names = append(names, o.name)
	}
	if near := didYouMean(name, names); near != "" {
		return &Fault{name, "is not an option of " + format + " files", near}
	}
	slices.Sort(names)
	return &Fault{name, "is not an option of " + format + " files", "there are " + strings.Join(names, ", ")}
}

// conflicts are faults of options and columns that are each fine alone.
func (s *settings) conflicts(columns []connectors.SourceColumn) []Fault {
	var faults []Fault
	if s.text["strict_mode"] == "false" && s.maxRejects.text != "0" {
		faults = append(faults, Fault{"max_rejects", "needs strict_mode: without it the places of bad rows are not known", ""})
	}
	if t := s.text["thousands"]; t != "" && t == s.text["decimal_separator"] {
		faults = append(faults, Fault{"thousands", "is the same as decimal_separator", ""})
	}
	for _, name := range []string{"quote", "comment", "thousands"} {
		if v := s.text[name]; v != "" && v == s.text["delim"] {
			faults = append(faults, Fault{name, "is the same as delim", ""})
		}
	}
	format, given := s.text["timestampformat"]
	for _, c := range columns {
		if given && strings.HasPrefix(c.Type, "TIMESTAMP") && !zoned(c.Type) && strings.Contains(format, "%z") {
			faults = append(faults, Fault{"timestampformat", "has %z, an offset, but column " + c.Name + " is a " + c.Type + ", which does not keep it", "declare the column as TIMESTAMPTZ"})
		}
		if given && c.Type == "TIMESTAMP WITH TIME ZONE" && !strings.Contains(format, "%z") {
			faults = append(faults, Fault{"timestampformat", "has no %z, but column " + c.Name + " is a " + c.Type + ", which needs the offset of its text",
				"declare the column as TIMESTAMP and write " + c.Name + " AT TIME ZONE 'Europe/Berlin' in the SELECT"})
		}
	}
	return faults
}

var remote = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

func pathFaults(from string) []Fault {
	scheme := remote.FindString(from)
	switch {
	case from == "":
		return []Fault{{"", "names no files", "write a path, like 'landing/*.csv'"}}
	case scheme == "file://":
		return []Fault{{"", "is an address", "write the plain path"}}
	case scheme != "":
		return []Fault{{"", "reading from " + scheme + " is not built in", syncHint(scheme)}}
	case strings.HasSuffix(from, "/"):
		return []Fault{{"", "names a folder", "write a pattern, like '" + from + "*.csv'"}}
	}
	p := newPattern(connectors.SourceSpec{From: from, Base: "/"})
	for _, c := range p.rest {
		if !p.plain && ignored(c) {
			return []Fault{{"", "names that start with . or _ or end in .tmp are never read, so " + c + " matches nothing", "rename the files, or move them to a folder of another name"}}
		}
	}
	return nil
}

// syncHint is how the files of a remote place become files of a folder.
func syncHint(scheme string) string {
	how := "rclone sync REMOTE:FOLDER landing/"
	switch strings.ToLower(scheme) {
	case "s3://", "s3a://", "s3n://", "r2://":
		how = "aws s3 sync s3://BUCKET/FOLDER landing/"
	case "gs://", "gcs://":
		how = "gcloud storage rsync --recursive gs://BUCKET/FOLDER landing/"
	case "http://", "https://":
		how = "curl --remote-time -o landing/NAME.tmp ADDRESS && mv landing/NAME.tmp landing/NAME"
	case "az://", "azure://", "abfss://":
		how = "azcopy sync ADDRESS landing/"
	}
	return "sync to a folder before each run and name that folder: " + how
}

func formatOf(spec connectors.SourceSpec) (string, *Fault) {
	format, about := strings.ToLower(spec.Format), "format"
	if o, ok := spec.Options["format"]; ok && format == "" {
		format = strings.ToLower(o.Text)
	}
	if format == "" {
		about = ""
		format = strings.TrimPrefix(strings.ToLower(path.Ext(nameOf(spec.From))), ".")
	}
	switch format {
	case formatParquet:
		if how := compression(strings.TrimRight(spec.From, ".*")); how != plain {
			return "", &Fault{"", "a Parquet file is compressed inside, not by " + how, "unpack the files first"}
		}
		return format, nil
	case formatCSV, formatJSON:
		return format, nil
	case "tsv":
		return formatCSV, nil
	case "jsonl", "ndjson":
		return formatJSON, nil
	}
	if about == "" {
		return "", &Fault{"", fmt.Sprintf("the format of %q cannot be told from its suffix", spec.From), "add WITH (format = 'csv'), 'json' or 'parquet'"}
	}
	return "", &Fault{about, fmt.Sprintf("%q is not a format", format), "there are csv, json (one object per line) and parquet"}
}

// nameOf is a pattern without what stands for compressed files as well: *.csv.gz and *.csv* are CSV.
func nameOf(from string) string { return uncompressed(strings.TrimRight(from, ".*")) }

// args writes the options as named arguments of DuckDB's reader, all of them, so that no default
// of another DuckDB version changes what is read.
func (s *settings) args() string {
	options := parquetOptions
	// DuckDB finds partition columns in folder names by itself unless it is told not to.
	out := []string{"hive_partitioning = false", "union_by_name = false"}
	if s.format == formatCSV {
		options = csvOptions
		out = append(out, "auto_detect = false")
	}
	for _, o := range options {
		text, ok := s.text[o.name]
		if !ok || o.ours {
			continue
		}
		if !o.bare {
			text = duck.Literal(text)
		}
		out = append(out, o.name+" = "+text)
	}
	return strings.Join(out, ", ")
}

func boolean(text string) string {
	if text == "true" || text == "false" {
		return ""
	}
	return "must be true or false"
}

func anyText(string) string { return "" }

func atLeast(least int64) func(string) string {
	return func(text string) string {
		if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < least {
			return fmt.Sprintf("must be a whole number of at least %d", least)
		}
		return ""
	}
}

func bytesUpTo(n int) func(string) string {
	return func(text string) string {
		if len(text) > n || strings.ContainsAny(text, "\r\n") {
			return fmt.Sprintf("must be at most %d byte(s) long and no line end", n)
		}
		return ""
	}
}

func oneOf(allowed ...string) func(string) string {
	return func(text string) string {
		if slices.Contains(allowed, text) {
			return ""
		}
		return "must be one of '" + strings.Join(allowed, "', '") + "'"
	}
}
