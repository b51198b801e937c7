module github.com/tally-counter/tally

go 1.26
