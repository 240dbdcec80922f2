// The probe for Node: computes and moves bytes as Crosswind asks (docs/reference/probe-protocol.md).
// Options: compute=loop|worker: in the event loop beside the traffic, a step a turn, or in a worker thread.
"use strict";
const crypto = require("crypto");
const fs = require("fs");
const net = require("net");
const readline = require("readline");
const { Worker, isMainThread, workerData } = require("worker_threads");

const PLACES = 8, MESSAGES_EACH = 32, STEP = 4096;

/** Elements (i, i + d) of the square of a matrix, a few microseconds' worth a step. */
class Diagonals {
  constructor(side, diagonals, counter) {
    Object.assign(this, { side, diagonals, counter, row: 0, diagonal: 0, sink: 0 });
    this.dots = Math.max(Math.floor(STEP / side), 1);
    this.matrix = Int32Array.from(crypto.randomBytes(side * side), (byte) => byte - 128);
    this.count = new BigUint64Array(1);
    this.bytes = new Uint8Array(this.count.buffer);
  }

  step() {
    const { matrix, side } = this;
    let sum = 0;
    for (let dot = 0; dot < this.dots; dot++) {
      let left = this.row * side, right = (this.row + this.diagonal) % side;
      for (let k = 0; k < side; k++, left++, right += side) sum = (sum + Math.imul(matrix[left], matrix[right])) | 0;
      if (++this.row === side) {
        this.row = 0;
        this.diagonal = (this.diagonal + 1) % this.diagonals;
      }
    }
    this.sink = sum; // read by nothing, but a property that anything may read: the work stays
    this.count[0]++;
    fs.writeSync(this.counter, this.bytes, 0, 8, 0);
  }
}

if (!isMainThread) {
  const work = new Diagonals(workerData.side, workerData.diagonals, workerData.counter);
  for (;;) work.step();
}

const options = Object.fromEntries(process.argv.slice(2).map((argument) => argument.split("=")));
const say = (line) => fs.writeSync(1, line + "\n");
let counter, flows = [];

function flow(send, to, ticket, bytes) {
  const colon = to.lastIndexOf(":");
  const places = Array.from({ length: PLACES }, () => crypto.randomBytes(bytes));
  let moved = 0;
  // Bytes that arrive land in one of our places; without this Node takes new memory for each read.
  const onread = { buffer: () => places[Math.floor(moved / MESSAGES_EACH) % PLACES], callback: () => (moved++, true) };
  const where = { host: to.slice(0, colon).replace(/[[\]]/g, ""), port: Number(to.slice(colon + 1)) };
  const socket = net.connect(send ? where : { ...where, onread });
  const one = { socket, closing: false };
  const ended = (why) => one.closing || say(`error a flow ended: ${why}`);
  socket.on("error", (problem) => ended(problem.message));
  socket.on("end", () => ended("the peer closed a connection"));
  socket.on("connect", () => {
    socket.write(ticket, "latin1");
    say(`ok ${socket.localPort}`);
    const write = () => {
      while (!one.closing && socket.write(places[Math.floor(moved++ / MESSAGES_EACH) % PLACES]));
    };
    if (send) {
      socket.on("drain", write);
      setImmediate(write); // not before the line is out
    }
  });
  flows.push(one);
}

function answer(words) {
  switch (words[0]) {
    case "crosswind":
      counter = fs.openSync(words[2], "r+");
      return say(`ok 1 node ${process.versions.node} v8=${process.versions.v8} compute=${options.compute || "loop"}`);
    case "compute": {
      if (words[1] !== "diagonals") return say(`error this probe computes diagonals only, not ${words[1]}`);
      const [side, diagonals] = [Number(words[2]), Number(words[3])];
      const work = new Diagonals(side, diagonals, counter);
      const stepsPerUnit = (side * diagonals) / work.dots;
      if (options.compute === "worker") {
        new Worker(__filename, { workerData: { side, diagonals, counter } });
        const first = new BigUint64Array(1);
        const look = () => {
          fs.readSync(counter, new Uint8Array(first.buffer), 0, 8, 0);
          if (first[0]) say(`ok ${stepsPerUnit}`);
          else setTimeout(look, 1);
        };
        return look();
      }
      const turn = () => {
        work.step();
        setImmediate(turn);
      };
      turn();
      return say(`ok ${stepsPerUnit}`);
    }
    case "flow":
      return flow(words[1] === "send", words[2], words[3], Number(words[4]));
    case "close":
      for (const one of flows) {
        one.closing = true;
        one.socket.destroy();
      }
      flows = [];
      return say("ok");
    case "quit":
      return process.exit(0);
    default:
      return say(`error unknown request ${words[0]}`);
  }
}

if (isMainThread) {
  const input = readline.createInterface({ input: process.stdin });
  input.on("line", (line) => {
    try {
      answer(line.split(" "));
    } catch (problem) {
      say(`error ${String(problem.message).replace(/\n/g, " ")}`);
    }
  });
  input.on("close", () => process.exit(0));
}
