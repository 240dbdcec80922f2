// The probe for Go: computes and moves bytes as Crosswind asks (docs/reference/probe-protocol.md).
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/rand"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	places       = 8
	messagesEach = 32
	step         = 4096
)

var (
	counter *uint64 // little-endian, as all machines that Crosswind builds for
	sink    int32   // results go here, so that no compiler leaves the work out
	flows   []*flow
	saying  sync.Mutex
)

func say(line string) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Println(line)
}

// Elements (i, i + d) of the square of a matrix, a few microseconds' worth a step.
func compute(side, diagonals, dots int) {
	matrix := make([]int32, side*side)
	for i := range matrix {
		matrix[i] = int32(rand.Intn(256)) - 128
	}
	row, diagonal := 0, 0
	for steps := uint64(1); ; steps++ {
		var sum int32
		for dot := 0; dot < dots; dot++ {
			left, right := matrix[row*side:(row+1)*side], (row+diagonal)%side
			for _, value := range left {
				sum += value * matrix[right]
				right += side
			}
			row++
			if row == side {
				row, diagonal = 0, (diagonal+1)%diagonals
			}
		}
		atomic.StoreInt32(&sink, sum)
		atomic.StoreUint64(counter, steps)
	}
}

type flow struct {
	connection net.Conn
	send       bool
	bytes      int
	closing    atomic.Bool
}

func (f *flow) run() {
	var messages [places][]byte
	for i := range messages {
		messages[i] = make([]byte, f.bytes)
		rand.Read(messages[i])
	}
	for moved := 0; ; {
		at := moved % f.bytes
		part := messages[moved/f.bytes/messagesEach%places][at:]
		var now int
		var err error
		if f.send {
			now, err = f.connection.Write(part)
		} else {
			now, err = f.connection.Read(part)
		}
		moved += now
		if err != nil {
			if !f.closing.Load() {
				say("error a flow ended: " + strings.ReplaceAll(err.Error(), "\n", " "))
			}
			return
		}
	}
}

func answer(words []string) (string, error) {
	switch words[0] {
	case "crosswind":
		file, err := os.OpenFile(words[2], os.O_RDWR, 0)
		if err != nil {
			return "", err
		}
		mapped, err := syscall.Mmap(int(file.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		if err != nil {
			return "", err
		}
		counter = (*uint64)(unsafe.Pointer(&mapped[0]))
		binary.LittleEndian.PutUint64(mapped, 0)
		facts := fmt.Sprintf("gomaxprocs=%d cpus=%d", runtime.GOMAXPROCS(0), runtime.NumCPU())
		return fmt.Sprintf(" 1 go %s %s", strings.TrimPrefix(runtime.Version(), "go"), facts), nil
	case "compute":
		if words[1] != "diagonals" {
			return "", fmt.Errorf("this probe computes diagonals only, not %s", words[1])
		}
		side, _ := strconv.Atoi(words[2])
		diagonals, _ := strconv.Atoi(words[3])
		dots := max(step/side, 1)
		go compute(side, diagonals, dots)
		for atomic.LoadUint64(counter) == 0 {
			time.Sleep(time.Millisecond)
		}
		return fmt.Sprintf(" %f", float64(side*diagonals)/float64(dots)), nil
	case "flow":
		connection, err := net.Dial("tcp", words[2])
		if err != nil {
			return "", err
		}
		if _, err := connection.Write([]byte(words[3])); err != nil {
			return "", err
		}
		bytes, err := strconv.Atoi(words[4])
		if err != nil {
			return "", err
		}
		one := &flow{connection: connection, send: words[1] == "send", bytes: bytes}
		flows = append(flows, one)
		go one.run()
		return fmt.Sprintf(" %d", connection.LocalAddr().(*net.TCPAddr).Port), nil
	case "close":
		for _, one := range flows {
			one.closing.Store(true)
			one.connection.Close()
		}
		flows = nil
		return "", nil
	}
	return "", fmt.Errorf("unknown request %s", words[0])
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() && input.Text() != "quit" {
		words, err := answer(strings.Fields(input.Text()))
		if err != nil {
			say("error " + strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			say("ok" + words)
		}
	}
}
