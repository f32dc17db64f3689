// pgx. Arguments: port, authority, another authority.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func connect(more string) (*pgx.Conn, error) {
	return pgx.Connect(context.Background(), "host=localhost user=admin password=quest dbname=qdb port="+os.Args[1]+more)
}

func main() {
	log.SetFlags(log.Lshortfile)
	verified := " sslmode=verify-full sslrootcert=" + os.Args[2]
	for _, more := range []string{verified, verified + " sslnegotiation=direct"} {
		connection, err := connect(more)
		if err != nil {
			log.Fatal(more, ": ", err)
		}
		rows, err := connection.Query(context.Background(), "select x, 'some text' from long_sequence($1)", int64(200000))
		if err != nil {
			log.Fatal(err)
		}
		var sum, x int64
		var text string
		_, err = pgx.ForEachRow(rows, []any{&x, &text}, func() error {
			sum += x
			return nil
		})
		if err != nil || sum != 200000*200001/2 {
			log.Fatal(sum, err)
		}
		soon, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		_, err = connection.Exec(soon, "select sum(sin(x)) from long_sequence(100000000000)")
		if !errors.Is(err, context.DeadlineExceeded) {
			var told *pgconn.PgError
			if !errors.As(err, &told) || told.Code != "57014" {
				log.Fatal("was not cancelled: ", err)
			}
		}
	}
	if _, err := connect(" sslmode=verify-full sslrootcert=" + os.Args[3]); err == nil {
		log.Fatal("connected with another authority")
	}
	if _, err := connect(" sslmode=disable"); err == nil || !strings.Contains(err.Error(), "pg.tls.required") {
		log.Fatal("without TLS: ", err)
	}
	fmt.Println("ok")
}
