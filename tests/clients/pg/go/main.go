// pgx in its ways to send a query: types, batches, transactions inside of one another, a pool, errors and cancelled contexts.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 123456000, time.UTC)

func insert(ctx context.Context, connection *pgx.Conn) {
	var price pgtype.Numeric
	check(price.Scan("12.34"))
	text := "insert into trades values ($1, $2, $3, $4, $5, $6, $7)"
	tag, err := connection.Exec(ctx, text, start, "BTC", 1.5, int64(1)<<40, price, []float64{1, 2.5}, "11111111-2222-3333-4444-555555555555")
	check(err)
	fmt.Println(tag)
	_, err = connection.Exec(ctx, text, start.Add(time.Hour), nil, nil, nil, nil, nil, nil)
	check(err)
	batch := &pgx.Batch{}
	for i := 0; i < 3; i++ {
		batch.Queue("insert into trades (ts, size) values ($1, $2)", start.Add(24*time.Hour), i)
	}
	batch.Queue("select count() from trades")
	results := connection.SendBatch(ctx, batch)
	for i := 0; i < 3; i++ {
		_, err = results.Exec()
		check(err)
	}
	var count int
	check(results.QueryRow().Scan(&count))
	check(results.Close())
	fmt.Println("rows", count)
}

func read(ctx context.Context, connection *pgx.Conn) {
	rows, err := connection.Query(ctx, "select * from trades where ts < $1 order by ts", start.Add(2*time.Hour))
	check(err)
	for rows.Next() {
		var ts time.Time
		var symbol, id *string
		var quantity, price *float64
		var size *int64
		var sizes []float64
		check(rows.Scan(&ts, &symbol, &quantity, &size, &price, &sizes, &id))
		if symbol == nil {
			fmt.Println(ts.Equal(start.Add(time.Hour)), quantity == nil, size == nil, price == nil, sizes == nil, id == nil)
		} else {
			fmt.Println(ts.Equal(start), *symbol, *quantity, *size, *price, sizes, *id)
		}
	}
	check(rows.Err())
	var count int
	check(connection.QueryRow(ctx, "select count() from trades where symbol = any($1) and size > $2", []string{"BTC", "ETH"}, int64(7)).Scan(&count))
	fmt.Println("found", count)
}

func change(ctx context.Context, connection *pgx.Conn) {
	outer, err := connection.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	check(err)
	_, err = outer.Exec(ctx, "update trades set size = 7 where symbol = 'BTC'")
	check(err)
	inner, err := outer.Begin(ctx)
	check(err)
	_, err = inner.Exec(ctx, "delete from trades")
	check(err)
	check(inner.Rollback(ctx))
	check(outer.Commit(ctx))
	var size int
	check(connection.QueryRow(ctx, "select size from trades where symbol = 'BTC'").Scan(&size))
	fmt.Println("size", size)
}

func fail(ctx context.Context, connection *pgx.Conn) {
	var failure *pgconn.PgError
	_, err := connection.Exec(ctx, "select nothing from trades")
	fmt.Println(errors.As(err, &failure), failure.Code, failure.Position)
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = connection.Exec(short, "select count() from long_sequence(100000000000) where rnd_double() > 2")
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
}

func main() {
	ctx := context.Background()
	url := "postgres://admin:quest@127.0.0.1:" + os.Args[1] + "/qdb?sslmode=disable&target_session_attrs=read-write"
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		fmt.Println(mode)
		connection, err := pgx.Connect(ctx, url+"&default_query_exec_mode="+mode)
		check(err)
		_, err = connection.Exec(ctx, "drop table if exists trades")
		check(err)
		_, err = connection.Exec(ctx, "create table trades (ts timestamp, symbol symbol, quantity double, size long, price decimal(10, 2), sizes double[], id uuid) timestamp(ts) partition by day")
		check(err)
		insert(ctx, connection)
		read(ctx, connection)
		change(ctx, connection)
		fail(ctx, connection)
	}
	pool, err := pgxpool.New(ctx, url+"&pool_max_conns=2")
	check(err)
	defer pool.Close()
	var count int
	check(pool.QueryRow(ctx, "select count() from trades").Scan(&count))
	fmt.Println("pool", count)
}
