//! The first inputs of `etl`: traces of Windows with events of all kinds, plain and compressed.

use std::io;

use nyquist_test_support::made_trace::{self, Buffer, Header};

pub(super) fn write() -> io::Result<()> {
    let header = Header::default();
    let buffers = [begin(), samples()];
    super::corpus::write("etl", 0, &made_trace::file(&header, &buffers))?;
    super::corpus::write("etl", 1, &made_trace::compressed_file(&header, &buffers))
}

/// A process with its threads and images.
fn begin() -> Buffer {
    let mut buffer = Buffer::new(1, 1);
    let app = (0x7ff6_0000_0000, 0x1_0000);
    buffer
        .system((3, 3, 4), (0, 0), 100, &made_trace::process((100, 4), "app.exe", "app.exe"))
        .system((5, 1, 4), (100, 104), 101, &made_trace::thread((100, 104), "main"))
        .system((3, 10, 3), (100, 104), 102, &made_trace::image(app, 100, 9, r"\Device\V3\app.exe"))
        .full(&made_trace::IMAGE_ID, (0, 2), (100, 0), 103, &made_trace::image_id(app, 100, 9, "app.exe"))
        .full(
            &made_trace::IMAGE_ID,
            (36, 2),
            (100, 0),
            104,
            &made_trace::pdb_id(app.0, 100, (&[7; 16], 1), "a.pdb"),
        )
        .full(
            &made_trace::SYSTEM_CONFIG_EX,
            (35, 0),
            (0, 0),
            105,
            &made_trace::volume(r"\Device\V3\", r"C:\"),
        )
        .described(&made_trace::IMAGE_ID, (36, 2), 106, 5, &[1, 2, 3]);
    buffer
}

/// Samples in the kernel and in user code, with stacks by address and by number.
fn samples() -> Buffer {
    let mut buffer = Buffer::new(0, 2);
    let (id, kernel) = ((100, 104), 0xffff_8000_0000_1000);
    buffer
        .perf_info((15, 73), 110, &made_trace::interval(10_000))
        .perf_info((15, 46), 120, &made_trace::sample(kernel, 104))
        .perf_info((24, 32), 121, &made_trace::stack(120, id, &[kernel, kernel + 8]))
        .perf_info((24, 32), 122, &made_trace::stack(120, id, &[0x7ff6_0000_1000]))
        .perf_info((5, 36), 123, &made_trace::switch(0, 104, 6, 5))
        .perf_info((15, 46), 130, &made_trace::sample(0x7ff6_0000_2000, 104))
        .perf_info((24, 38), 131, &made_trace::stack_key(130, id, 0xaa))
        .perf_info((24, 36), 132, &made_trace::keyed_stack(0xaa, &[0x7ff6_0000_2000]))
        .system((20, 2, 3), id, 140, &made_trace::image((0x7ff6_0000_0000, 0x1_0000), 100, 9, "x"))
        .system((5, 2, 4), id, 141, &made_trace::thread(id, ""))
        .system((3, 2, 4), id, 142, &made_trace::process((100, 4), "app.exe", ""));
    buffer
}
