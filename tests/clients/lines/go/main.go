// QuestDB's Go client: for each line of the input, a configuration, it sends a row to `ticks` and prints the outcome.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	questdb "github.com/questdb/go-questdb-client/v4"
)

func send(configuration string) error {
	ctx := context.Background()
	sender, err := questdb.LineSenderFromConf(ctx, configuration)
	if err != nil {
		return err
	}
	defer sender.Close(ctx)
	if err := sender.Table("ticks").Float64Column("price", 1.5).At(ctx, time.UnixMicro(1)); err != nil {
		return err
	}
	return sender.Flush(ctx)
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		if err := send(input.Text()); err != nil {
			fmt.Println(strings.Join(strings.Fields(err.Error()), " "))
		} else {
			fmt.Println("ok")
		}
	}
}
