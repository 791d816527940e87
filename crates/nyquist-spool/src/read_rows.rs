//! Reads categories, kinds of markers, processes, threads and counters.

use crate::fields::Fields;
use crate::marker_rows::read_schema;
use crate::read_code::LOST;
use crate::recovered::RecoveredTables;
use crate::row_names::{read_process, read_thread};
use nyquist_profile::{
    CategoryColor, Counter, CounterDisplay, CounterGraph, GraphColor, MarkerSchema, Process, ProcessIndex,
    Thread, ThreadIndex,
};

impl RecoveredTables {
    pub(crate) fn read_category(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let index: usize = fields.small()?;
        let (name, color) = (fields.text()?, CategoryColor::from_name(fields.text()?)?);
        for _ in 0..self.missing_before(index, self.categories.len())? {
            let lost = self.builder.add_category(LOST, CategoryColor::LightRed);
            self.categories.push(lost);
        }
        if index == self.categories.len() {
            self.categories.push(self.builder.add_category(name, color));
        }
        let category = self.categories[index];
        while !fields.is_empty() {
            self.builder.add_subcategory(category, fields.text()?);
        }
        Some(())
    }

    pub(crate) fn read_schema(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let index: usize = fields.small()?;
        for _ in 0..self.missing_before(index, self.schemas.len())? {
            let lost = MarkerSchema { name: LOST.to_owned(), ..MarkerSchema::default() };
            self.schemas.push(self.builder.add_marker_schema(lost));
        }
        let schema = read_schema(fields)?;
        if index == self.schemas.len() {
            self.schemas.push(self.builder.add_marker_schema(schema));
        }
        Some(())
    }

    pub(crate) fn read_processes(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        while !fields.is_empty() {
            let (index, process) = read_process(fields)?;
            let known = self.builder.profile().processes().len();
            for _ in 0..self.missing_before(index, known)? {
                self.add_lost_process();
            }
            let known = self.builder.profile().processes().len();
            if index == known {
                self.builder.add_process(process);
            } else {
                let row = self.builder.process_mut(ProcessIndex::from_index(index));
                // A changed number might be that of another process.
                *row = Process { pid: std::mem::take(&mut row.pid), ..process };
            }
        }
        Some(())
    }

    fn add_lost_process(&mut self) -> ProcessIndex {
        self.builder.add_process(Process {
            pid: LOST.to_owned(),
            name: LOST.to_owned(),
            ..Process::default()
        })
    }

    pub(crate) fn read_threads(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        while !fields.is_empty() {
            let (index, thread) = read_thread(fields, self.builder.profile().processes().len())?;
            let missing = self.missing_before(index, self.rows.len())?;
            if missing > 0 {
                let process = self.add_lost_process();
                for _ in 0..missing {
                    self.add_thread(Thread::new(process, LOST, LOST));
                }
            }
            if index == self.rows.len() {
                self.add_thread(thread);
            } else {
                let row = self.builder.thread_mut(ThreadIndex::from_index(index));
                row.process = thread.process;
                (row.tid, row.name) = (thread.tid, thread.name);
                (row.start, row.end, row.is_main) = (thread.start, thread.end, thread.is_main);
            }
        }
        Some(())
    }

    fn add_thread(&mut self, thread: Thread) {
        self.builder.add_thread(thread);
        self.rows.push((0, 0));
    }

    pub(crate) fn read_counter(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let index: usize = fields.small()?;
        let (counter, accompanies) = self.counter(fields)?;
        for _ in 0..self.missing_before(index, self.counters.len())? {
            // It gets no values, and is left out.
            self.builder.add_counter(Counter { samples: Vec::new(), ..counter.clone() });
            self.counters.push((0, true));
        }
        if index == self.counters.len() {
            self.builder.add_counter(counter);
            self.counters.push((0, accompanies));
        }
        Some(())
    }

    /// A counter, and whether it only accompanies samples.
    fn counter(&self, fields: &mut Fields<'_>) -> Option<(Counter, bool)> {
        let processes = self.builder.profile().processes().len();
        let process: usize = fields.small().filter(|process| *process < processes)?;
        let accompanies = fields.flag()?;
        let [name, category, description] = [fields.owned()?, fields.owned()?, fields.owned()?];
        let display = CounterDisplay {
            unit: fields.owned()?,
            label: fields.owned()?,
            graph: CounterGraph::from_name(fields.text()?)?,
            color: GraphColor::from_name(fields.text()?)?,
            sort_weight: i32::try_from(fields.after(0)? as i64).ok()?,
            marker_schema_location: fields.optional_text()?,
        };
        let process = ProcessIndex::from_index(process);
        Some((Counter { name, category, description, process, display, samples: Vec::new() }, accompanies))
    }
}
