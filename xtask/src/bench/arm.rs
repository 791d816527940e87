//! `cargo xtask bench arm`: the instructions that recorders execute for a sample, beside `perf record`, in a
//! virtual machine with a 64-bit ARM processor. Its counters are exact, and do not depend on this machine's load.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::samples;
use crate::arm::machine::{EMULATOR, Left, Machine, STEADY};
use crate::arm::{self, Build};
use crate::packages;

/// What is measured.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Samples for each second of CPU time
    #[arg(long, default_value_t = 1000)]
    rate: u32,
    /// How often each program passes over its table in the shorter and the longer recording; a pass takes 0.9 ms
    #[arg(long, value_delimiter = ',', default_value = "500,3000")]
    passes: Vec<u32>,
    /// Measures this program, which was built for 64-bit ARM and is statically linked, and builds none
    #[arg(long, value_name = "PATH")]
    nyquist: Option<PathBuf>,
    /// Runs this shell script in the machine instead, which has all programs, and prints its output
    #[arg(long, value_name = "PATH")]
    script: Option<PathBuf>,
}

/// The recorded programs: their names in the tables and in the machine, and the flags of their builds.
const PROGRAMS: [(&str, &str, &[&str]); 2] = [
    ("24 calls deep", "calls-24", &["-fno-omit-frame-pointer"]),
    ("200 calls deep", "calls-200", &["-fno-omit-frame-pointer", "-DDEPTH=200"]),
];

/// A recorder in one of its modes.
struct Recorder {
    /// Its name in the table.
    name: &'static str,
    /// Its name in the files.
    file: &'static str,
    /// Its command line, up to its output.
    args: &'static str,
}

const fn recorder(name: &'static str, file: &'static str, args: &'static str) -> Recorder {
    Recorder { name, file, args }
}

/// The recorders, each below the one of the same mode.
const RECORDERS: [Recorder; 6] = [
    recorder("nyquist", "nyquist", "nyquist record -q -s"),
    recorder("nyquist, 8 kB", "nyquist-8k", "nyquist record -q -s --call-graph dwarf --stack-size 8192"),
    recorder("perf dwarf", "perf-dwarf", "perf record -q --call-graph dwarf"),
    recorder("nyquist fp", "nyquist-fp", "nyquist record -q -s --call-graph fp"),
    recorder("nyquist fp, no counters", "nyquist-bare", "nyquist record -q -s --call-graph fp --no-counters"),
    recorder("perf -g", "perf-fp", "perf record -q -g"),
];

/// How perf's samples get names. Inlined calls are left out, because perf has another program for them.
const NAMING: &str = "perf script --no-inline";

impl Recorder {
    fn is_perf(&self) -> bool {
        self.args.starts_with("perf")
    }

    /// The lines of the machine's script that record a command, and leave figures in files that begin with
    /// `run`.
    fn script(&self, rate: u32, run: &str, command: &str) -> String {
        let output = if self.is_perf() { "/tmp/perf.data".to_owned() } else { format!("{run}.json.gz") };
        let record = format!("instructions {run}.recorder {} -F {rate} -o {output}", self.args);
        let record = format!("{record} -- instructions {run}.command {command} || exit 1\n");
        if !self.is_perf() {
            return record;
        }
        format!(
            "{record}wc -c < {output} > {run}.bytes
perf report --stats -i {output} > {run}.stats 2> /dev/null || exit 1
instructions {run}.naming {NAMING} -i {output} > /dev/null 2>&1 || exit 1
rm {output}
"
        )
    }
}

/// Measures and prints the table. Returns whether that was possible.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let lacking = packages::install_arm();
    if !lacking.is_empty() {
        eprintln!("A virtual machine needs Debian's {}.", lacking.join(", "));
        return Ok(false);
    }
    ensure!(
        options.passes.len() == 2 && options.passes[0] < options.passes[1],
        "`--passes` takes FEWER,MORE"
    );
    let folder = crate::paths::target().join("bench-arm");
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let machine = machine(options, &folder)?;
    if let Some(path) = &options.script {
        let script = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        print!("{}", run_in(&machine, &folder, &script)?.text("log")?);
        return Ok(true);
    }
    let left = run_in(&machine, &folder, &script(options))?;
    print!("{}", left.text("versions")?);
    print_table(options, &left)?;
    Ok(true)
}

/// The machine, with the recorders and what they record.
fn machine(options: &Options, folder: &Path) -> Result<Machine> {
    let parts = arm::parts()?;
    let nyquist = match &options.nyquist {
        Some(path) => path.clone(),
        None => arm::build_nyquist(Build::Release)?,
    };
    let mut machine = Machine::new(&parts, &nyquist);
    machine.add_options(STEADY);
    for (file, path) in arm::perf::files(&arm::folder())? {
        machine.add(file, path);
    }
    let programs = PROGRAMS.iter().map(|&(_, name, flags)| ("fixed_work", name, flags));
    for (source, name, flags) in programs.chain([("instructions", "instructions", &[][..])]) {
        let built = folder.join(name);
        arm::build_workload(source, &[flags, &["-static"]].concat(), &built)?;
        machine.add(built, format!("bin/{name}"));
    }
    Ok(machine)
}

/// Runs a script in the machine.
fn run_in(machine: &Machine, folder: &Path, script: &str) -> Result<Left> {
    let (archive, port) = (folder.join("initrd"), folder.join("out.tar"));
    machine.write_files(&archive, script)?;
    let mut emulator = Command::new(EMULATOR);
    emulator.args(machine.arguments(&archive, &port)).stdin(Stdio::null());
    let finished = emulator.output().with_context(|| format!("cannot start {EMULATOR}"))?;
    ensure!(finished.status.success(), "the emulator failed: {}", String::from_utf8_lossy(&finished.stderr));
    Left::unpack(&port, folder.join("out"), &String::from_utf8_lossy(&finished.stdout))
}

/// Each recorder first records once unmeasured, because it keeps what it has learned of programs.
fn script(options: &Options) -> String {
    let mut script = "(uname -sr; nyquist --version; perf --version) > versions\n".to_owned();
    for (_, program, _) in PROGRAMS {
        for passes in &options.passes {
            let plain = format!("{program}-{passes}.plain");
            script +=
                &["instructions ", &plain, " ", program, " ", &passes.to_string(), " || exit 1\n"].concat();
        }
        for recorder in &RECORDERS {
            let file = recorder.file;
            script += &recorder.script(options.rate, "/tmp/first", &format!("{program} 100"));
            for passes in &options.passes {
                let run = format!("{program}-{file}-{passes}");
                script += &recorder.script(options.rate, &run, &format!("{program} {passes}"));
            }
        }
    }
    script
}

/// What two recordings of different lengths say: what is the same in both, and what each sample adds.
struct Marginal {
    fixed: f64,
    of_sample: f64,
}

impl Marginal {
    /// By the samples and the costs of the shorter and the longer recording.
    fn of(samples: [f64; 2], costs: [f64; 2]) -> Self {
        let of_sample = (costs[1] - costs[0]) / (samples[1] - samples[0]);
        Self { fixed: costs[0] - of_sample * samples[0], of_sample }
    }
}

fn print_table(options: &Options, left: &Left) -> Result<()> {
    println!(
        "\n| stacks | recorder | samples | a sample: recorder, user | kernel | recorded program, kernel | bytes of the file | start and end, millions: user | kernel | naming a sample: user | kernel |\n|---|---|---|---|---|---|---|---|---|---|---|"
    );
    for (stacks, program, _) in PROGRAMS {
        for recorder in &RECORDERS {
            print_row(options, left, stacks, program, recorder)?;
        }
    }
    Ok(())
}

fn print_row(options: &Options, left: &Left, stacks: &str, program: &str, recorder: &Recorder) -> Result<()> {
    let both = |figure: &dyn Fn(u32, &str) -> Result<f64>| -> Result<[f64; 2]> {
        let of = |passes: u32| figure(passes, &format!("{program}-{}-{passes}", recorder.file));
        Ok([of(options.passes[0])?, of(options.passes[1])?])
    };
    let samples = both(&|_, run| samples_of(left, run, recorder))?;
    let cost = |file: &str, of: &str| both(&|_, run| instructions(left, &format!("{run}.{file}"), of));
    let sampling = both(&|passes, run| {
        let plain = instructions(left, &format!("{program}-{passes}.plain"), "kernel")?;
        Ok(instructions(left, &format!("{run}.command"), "kernel")? - plain)
    })?;
    let bytes = both(&|_, run| bytes_of(left, run, recorder))?;
    let marginal = |costs| Marginal::of(samples, costs);
    let (user, kernel) = (marginal(cost("recorder", "user")?), marginal(cost("recorder", "kernel")?));
    let mut cells = vec![
        stacks.to_owned(),
        recorder.name.to_owned(),
        format!("{:.0}", samples[1]),
        format!("{:.0}", user.of_sample),
        format!("{:.0}", kernel.of_sample),
        format!("{:.0}", marginal(sampling).of_sample),
        format!("{:.0}", marginal(bytes).of_sample),
        format!("{:.0}", user.fixed / 1e6),
        format!("{:.0}", kernel.fixed / 1e6),
    ];
    for of in ["user", "kernel"] {
        let naming = || Ok::<_, anyhow::Error>(format!("{:.0}", marginal(cost("naming", of)?).of_sample));
        cells.push(if recorder.is_perf() { naming()? } else { String::new() });
    }
    println!("| {} |", cells.join(" | "));
    Ok(())
}

/// A figure that the program `instructions` has written.
fn instructions(left: &Left, file: &str, of: &str) -> Result<f64> {
    let figures: Value = serde_json::from_str(&left.text(file)?)?;
    figures[of].as_f64().with_context(|| format!("{file} does not say {of}"))
}

fn samples_of(left: &Left, run: &str, recorder: &Recorder) -> Result<f64> {
    let samples = if recorder.is_perf() {
        samples::in_stats(&left.text(&format!("{run}.stats"))?)?
    } else {
        samples::in_profile(&left.path(&format!("{run}.json.gz")))?
    };
    Ok(samples.taken)
}

fn bytes_of(left: &Left, run: &str, recorder: &Recorder) -> Result<f64> {
    if recorder.is_perf() {
        return Ok(left.text(&format!("{run}.bytes"))?.trim().parse()?);
    }
    let path = left.path(&format!("{run}.json.gz"));
    Ok(fs::metadata(&path).with_context(|| format!("there is no {}", path.display()))?.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::Marginal;

    #[test]
    fn what_both_recordings_have_is_not_the_samples() {
        let marginal = Marginal::of([100.0, 300.0], [1500.0, 2500.0]);
        assert_eq!((marginal.fixed, marginal.of_sample), (1000.0, 5.0));
    }
}
