// Reads the responses from the file, before the page requests them.

import { answerFrom } from '../assets/api.js';
import { createAnswers } from './answers.js';

answerFrom(createAnswers(JSON.parse(document.getElementById('answers')?.textContent ?? '')));
