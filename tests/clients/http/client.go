// Go's net/http with its default client.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
)

var base = os.Args[1]

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func same(expected, found string) {
	if expected != found {
		panic("expected " + expected + ", found " + found)
	}
}

func text(reply *http.Response, err error) string {
	check(err)
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	check(err)
	return fmt.Sprint(reply.StatusCode, " ", string(body))
}

func exec(query string) string {
	return text(http.Get(base + "/exec?nm=true&query=" + url.QueryEscape(query)))
}

func main() {
	rows, err := strconv.Atoi(os.Args[2])
	check(err)
	requests, err := strconv.Atoi(os.Args[3])
	check(err)
	one := `200 {"dataset":[[1]],"count":1}`
	same(one, exec("select 1"))
	same(one, text(http.PostForm(base+"/exec", url.Values{"query": {"select 1"}, "nm": {"true"}})))
	same(one, text(http.Post(base+"/exec", "application/json", strings.NewReader(`{"query": "select 1", "nm": true}`))))
	same("204 ", text(http.Post(base+"/write", "text/plain", strings.NewReader("go v=1i\n"))))
	// Without a length, so the body is chunked.
	same("204 ", text(http.Post(base+"/write", "text/plain", io.MultiReader(strings.NewReader("go v=2i\n"), strings.NewReader("go v=3i\n")))))
	same(`200 {"dataset":[[3]],"count":1}`, exec("select count() from go"))
	reply, err := http.Get(base + "/exp?query=" + url.QueryEscape(fmt.Sprintf("select x from long_sequence(%d)", rows)))
	check(err)
	lines := 0
	for scanner := bufio.NewScanner(reply.Body); scanner.Scan(); {
		lines++
	}
	same(fmt.Sprint(rows+1), fmt.Sprint(lines))
	reply, err = http.Get(base + "/exp?query=" + url.QueryEscape("select x from long_sequence(100000000000)"))
	check(err)
	_, err = io.CopyN(io.Discard, reply.Body, 100_000)
	check(err)
	reply.Body.Close()
	same("200 ", text(http.Head(base+"/settings")))
	var all sync.WaitGroup
	for n := 0; n < 100; n++ {
		all.Add(1)
		go func() {
			defer all.Done()
			same(fmt.Sprintf(`200 {"dataset":[[%d]],"count":1}`, n), exec(fmt.Sprint("select ", n)))
		}()
	}
	all.Wait()
	for n := 0; n < requests; n++ {
		same(one, exec("select 1"))
	}
	fmt.Println("ok")
}
