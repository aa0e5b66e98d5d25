// go run receiver.go
package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func isSigned(key []byte, header http.Header, body []byte) bool {
	id, at := header.Get("webhook-id"), header.Get("webhook-timestamp")
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	seconds, err := strconv.ParseInt(at, 10, 64)
	isNow := err == nil && time.Since(time.Unix(seconds, 0)).Abs() <= 5*time.Minute
	return isNow && hmac.Equal([]byte(expected), []byte(header.Get("webhook-signature")))
}

func main() {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("CALL_SECRET"), "whsec_"))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /", func(answer http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(answer, request.Body, 1<<20))
		if err != nil || !isSigned(key, request.Header, body) {
			http.Error(answer, "not from our queue", http.StatusUnauthorized)
			return
		}
		// at least once: a unique key of your database tells whether this id was here before
		log.Printf("%s: %s", request.Header.Get("webhook-id"), body)
		fmt.Fprint(answer, "success")
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "8080"), nil))
}
