module lines

go 1.19

require github.com/questdb/go-questdb-client/v4 v4.1.0
