// The page in a file: first the responses, then the same page as the served one.

import {} from './begin.js';
import {} from '../assets/main.js';
