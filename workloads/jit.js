// Two functions that a just-in-time compiler compiles, with known shares of the CPU: alpha 60 %, beta 40 %.
'use strict';
const { appendFileSync } = require('node:fs');

const parts = { alpha: 0, beta: 0 };

function spin(rounds) {
  let sum = 0;
  for (let i = 0; i < rounds; i++) sum = (sum * 31 + i) | 0;
  return sum;
}

// The two must not become one another's code: each has a loop of its own around the work.
function alpha(ms) {
  const began = process.cpuUsage();
  let used;
  do { spin(200000); used = process.cpuUsage(began); } while (used.user + used.system < ms * 1000);
  parts.alpha += (used.user + used.system) * 1000;
}

function beta(ms) {
  const began = process.cpuUsage();
  let used;
  do { spin(200000); used = process.cpuUsage(began); } while (used.user + used.system < ms * 1000);
  parts.beta += (used.user + used.system) * 1000;
}

const ms = Number(process.argv[2] ?? 1000);
for (let turn = 0; turn < 10; turn++) {
  alpha(ms * 0.06);
  beta(ms * 0.04);
}
const { user, system } = process.cpuUsage();
const truth = { program: 'jit', pid: process.pid, cpu_ns: (user + system) * 1000, user_ns: user * 1000, system_ns: system * 1000, parts };
if (process.env.WORKLOAD_TRUTH) appendFileSync(process.env.WORKLOAD_TRUTH, JSON.stringify(truth) + '\n');
